import type { ComponentChildren } from 'preact';
import type { ExplainedOperation } from '../../../../wire/operation.ts';
import { Who } from '../daemon.tsx';
import { counted, shownKey } from '../format.ts';
import { Command, quoted } from '../parts/command.tsx';
import { Badge, Notice, type Tone } from '../parts/notice.tsx';
import { Fields, Heading, Section } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { hrefTo } from '../router.ts';
import { useData } from '../use-data.ts';
import { Decisions, type Decision } from './outbox-decisions.tsx';

type Operation = ExplainedOperation;

const kinds: Readonly<Record<Operation['kind'], string>> = {
  usage: 'One use of',
  decrease: 'One use taken back of',
  disable: 'Disable',
  enable: 'Enable',
  create_coupon: 'New coupon',
  redeem: 'Coupon redeemed by order',
  void: 'Redemption voided of order',
};

const tones: Readonly<Record<Operation['state'], Tone>> = {
  pending: 'quiet',
  in_flight: 'quiet',
  uncertain: 'warn',
  delivered: 'ok',
  inferred: 'warn',
  conflicted: 'fail',
  dead: 'fail',
  cancelled: 'quiet',
  dropped: 'quiet',
};

export const stateNames: Readonly<Record<Operation['state'], string>> = {
  pending: 'pending',
  in_flight: 'being sent',
  uncertain: 'uncertain',
  delivered: 'delivered',
  inferred: 'inferred',
  conflicted: 'conflicted',
  dead: 'dead',
  cancelled: 'cancelled',
  dropped: 'dropped',
};

export function StateBadge({ operation: { state, held } }: { operation: Pick<Operation, 'state' | 'held'> }) {
  return <Badge tone={held ? 'fail' : tones[state]}>{held ? 'uncertain, held' : stateNames[state]}</Badge>;
}

/** What a change does, in words: `One use of KEY`. */
export function changeText({
  kind,
  amount,
  subject,
}: Pick<Operation, 'kind' | 'amount' | 'subject'>): string {
  return `${amount > 1 ? `${amount} uses of` : kinds[kind]} ${shownKey(subject)}`;
}

/** A change in the list. */
export function Change({
  operation,
  onDecided,
}: {
  operation: Operation;
  onDecided: (operation: Operation, decision: Decision) => void;
}) {
  return (
    <li class="change card">
      <div class="change-text">
        <h2>
          <a href={hrefTo(['outbox', operation.id])}>{changeText(operation)}</a>
        </h2>
        <p class="quiet">
          <StateBadge operation={operation} /> recorded <Time at={operation.created_at} />
          {operation.attempts > 0 && `, ${counted(operation.attempts, 'attempt')}`}
        </p>
        <Explained operation={operation} />
      </div>
      <div class="actions">
        <Decisions
          operation={operation}
          about={changeText(operation)}
          onDone={(decision) => onDecided(operation, decision)}
        />
      </div>
    </li>
  );
}

/** Why a change is in its state: the meaning, what it waits for, the counts, and the last error. */
function Explained({ operation }: { operation: Operation }) {
  const { explanation, last_error: error } = operation;
  return (
    <>
      <p>{explanation.meaning}</p>
      {explanation.waits.length > 0 && (
        <p class="quiet">
          {explanation.waits.map(({ cause, detail, until }) => (
            <span key={cause}>
              {detail}
              {until !== null && (
                <>
                  : <Time at={until} />
                </>
              )}
              .{' '}
            </span>
          ))}
        </p>
      )}
      <Counts operation={operation} />
      {error !== null && (
        <p class="error">
          <span class="quiet">Last error:</span> {error}
        </p>
      )}
    </>
  );
}

/** The count that shows that the change was applied, and the count that the store shows. */
function Counts({ operation }: { operation: Operation }) {
  const { expected_uses: expected, shown } = operation.explanation;
  const isOpen = ['uncertain', 'conflicted', 'inferred'].includes(operation.state);
  if (!isOpen || (expected === null && shown === null)) return null;
  return (
    <dl class="compare">
      {operation.base_uses !== null && (
        <Figure name="Before the change" value={counted(operation.base_uses, 'use')} />
      )}
      {expected !== null && <Figure name="If it alone was applied" value={counted(expected, 'use')} />}
      {shown !== null && (
        <Figure
          name={
            <>
              The store showed <Time at={shown.at} />
            </>
          }
          value={`${counted(shown.uses, 'use')}, ${shown.enabled ? 'enabled' : 'disabled'}`}
        />
      )}
    </dl>
  );
}

function Figure({ name, value }: { name: ComponentChildren; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

const changeEveryMs = 3_000;

/** The page of one change. */
export function ChangePage({ id }: { id: string }) {
  const { data, error, reload } = useData<Operation>(
    `/admin/v1/outbox/${encodeURIComponent(id)}`,
    changeEveryMs,
  );
  return (
    <>
      <nav aria-label="Back">
        <a href={hrefTo(['outbox'])}>Outbox</a>
      </nav>
      <Heading title={data === null ? 'Change' : changeText(data)}>
        {data !== null && <Decisions operation={data} about={changeText(data)} onDone={reload} />}
      </Heading>
      {error !== null && <Notice tone="fail">{error.message}</Notice>}
      {data !== null && <ChangeDetails operation={data} />}
    </>
  );
}

function ChangeDetails({ operation }: { operation: Operation }) {
  return (
    <>
      <Section title="Why it is here">
        <p>
          <StateBadge operation={operation} />
        </p>
        <Explained operation={operation} />
      </Section>
      <Section title="Details">
        <Fields
          entries={{
            'License key': operation.license_key !== null && (
              <a href={hrefTo(['licenses', operation.license_key])}>{shownKey(operation.license_key)}</a>
            ),
            Recorded: <Time at={operation.created_at} />,
            Attempts: operation.attempts,
            'Next attempt': operation.next_at !== null && <Time at={operation.next_at} />,
            'Recorded by': operation.credential !== null && <Who is={operation.credential} />,
            Request: operation.request_id !== null && <code>{operation.request_id}</code>,
            Id: <code>{operation.id}</code>,
            Decisions: <a href={hrefTo(['audit'], { subject: operation.id })}>Who decided about it</a>,
          }}
        />
        <Command line={`latchkey outbox show ${quoted(operation.id)}`} />
      </Section>
    </>
  );
}
