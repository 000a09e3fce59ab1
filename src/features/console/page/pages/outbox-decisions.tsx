import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ExplainedOperation } from '../../../../wire/operation.ts';
import { ApiError, readAll, send, withQuery } from '../api.ts';
import { count, counted, isMasked } from '../format.ts';
import { Action } from '../parts/action.tsx';
import { quoted } from '../parts/command.tsx';
import { Notice } from '../parts/notice.tsx';

export const decisions = ['retry', 'drop', 'confirm'] as const;
export type Decision = (typeof decisions)[number];

const labels: Readonly<Record<Decision, string>> = {
  retry: 'Retry',
  drop: 'Drop',
  confirm: 'Confirm',
};

const questions: Readonly<Record<Decision, string>> = {
  retry: 'Send this change again?',
  drop: 'Give up this change?',
  confirm: 'Was this change applied at the upstream?',
};

/** `retry`, `drop` and `confirm` of one change, if they are possible. */
export function Decisions({
  operation,
  about,
  onDone,
}: {
  operation: ExplainedOperation;
  about: string;
  onDone: (decision: Decision) => void;
}) {
  const { id, explanation } = operation;
  const possible = decisions.filter((decision) => explanation.decisions[decision] !== null);
  return (
    <>
      {possible.map((decision) => (
        <Action
          key={decision}
          label={labels[decision]}
          about={about}
          title={questions[decision]}
          consequence={explanation.decisions[decision]}
          command={`latchkey outbox ${decision} ${quoted(id)}`}
          isDangerous={decision === 'drop'}
          run={() => decide(id, decision)}
          onDone={() => onDone(decision)}
        />
      ))}
    </>
  );
}

function decide(id: string, decision: Decision): Promise<void> {
  return send<void>('POST', `/admin/v1/outbox/${encodeURIComponent(id)}/${decision}`, {});
}

/** A filter of the outbox, as in the address; '': no filter. */
export type OutboxFilter = { readonly state: string; readonly licenseKey: string; readonly search: string };

/** Without a limit: as the route has it. */
export function filterPath({ state, licenseKey, search }: OutboxFilter, limit?: number): string {
  return withQuery('/admin/v1/outbox', {
    state,
    license_key: licenseKey,
    search,
    explain: 'true',
    limit: limit === undefined ? null : String(limit),
  });
}

/** The options of `latchkey outbox` for a filter. A masked license key is replaced by a placeholder. */
export function filterOptions({ state, licenseKey, search }: OutboxFilter): string {
  const options = [
    ...(state === '' ? [] : [`--state ${state}`]),
    ...(licenseKey === '' ? [] : [`--key ${isMasked(licenseKey) ? 'LICENSE_KEY' : quoted(licenseKey)}`]),
    ...(search === '' ? [] : [`--search ${quoted(search)}`]),
  ];
  return options.map((option) => ` ${option}`).join('');
}

const bulkConsequences: Readonly<Record<Decision, string>> = {
  retry:
    'Each of them is sent again. A change that is uncertain may have been applied: a use that was applied counts twice.',
  drop: 'None of them is sent any more. What was already applied at the upstream stays. This cannot be undone.',
  confirm:
    'Each of them counts as delivered, and nothing is sent. Confirm only if the upstream shows that all of them were applied. This cannot be undone.',
};

const bulkTitles: Readonly<Record<Decision, string>> = {
  retry: 'Send all changes of this filter again?',
  drop: 'Give up all changes of this filter?',
  confirm: 'Were all changes of this filter applied?',
};

/** `retry`, `drop` and `confirm` of all changes of a filter. */
export function BulkDecisions({
  filter,
  total,
  onDone,
}: {
  filter: OutboxFilter;
  total: number;
  onDone: () => void;
}) {
  const [progress, setProgress] = useState<string | null>(null);
  return (
    <>
      {decisions.map((decision) => (
        <Action
          key={decision}
          label={`${labels[decision]} all`}
          title={bulkTitles[decision]}
          consequence={
            <>
              This is about {counted(total, 'change')}, except those for which it is not possible.{' '}
              {bulkConsequences[decision]}
            </>
          }
          command={`latchkey outbox decide ${decision}${filterOptions(filter) || ' --all'}`}
          isDangerous={decision === 'drop'}
          run={async () => {
            const result = await decideAll(filter, decision, (done, all) =>
              setProgress(`${count(done)} of ${count(all)} …`),
            );
            setProgress(null);
            return <BulkResult {...result} />;
          }}
          onDone={onDone}
        >
          <p role="status">{progress}</p>
        </Action>
      ))}
    </>
  );
}

type Outcome = {
  readonly done: number;
  /** How many the daemon refused, and its reasons. */
  readonly refused: number;
  readonly reasons: ReadonlySet<string>;
  readonly impossible: number;
};

function BulkResult({ done, refused, reasons, impossible }: Outcome): ComponentChildren {
  return (
    <>
      <Notice tone={refused === 0 ? 'ok' : 'warn'}>
        {counted(done, 'change')} decided.
        {impossible > 0 && ` For ${counted(impossible, 'change')} it is not possible.`}
      </Notice>
      {refused > 0 && (
        <Notice tone="fail">
          {counted(refused, 'change')} refused: {[...reasons].join(' ')}
        </Notice>
      )}
    </>
  );
}

/** Decides about the changes that the filter has now. Later changes are not touched. */
async function decideAll(
  filter: OutboxFilter,
  decision: Decision,
  onProgress: (done: number, all: number) => void,
): Promise<Outcome> {
  const all = await readAll<ExplainedOperation>(filterPath(filter), 'operations');
  const possible = all.filter(({ explanation }) => explanation.decisions[decision] !== null);
  const reasons = new Set<string>();
  let [done, refused] = [0, 0];
  for (const { id } of possible) {
    try {
      await decide(id, decision);
      done += 1;
    } catch (error) {
      // Without an answer, or without a session, the rest would fail in the same way.
      if (!(error instanceof ApiError) || error.status === 0 || error.status === 401) throw error;
      refused += 1;
      reasons.add(error.message);
    }
    onProgress(done + refused, possible.length);
  }
  return { done, refused, reasons, impossible: all.length - possible.length };
}
