import type { OperationState } from '../../../domain/outbox/operation.ts';
import { counted } from '../../../domain/text.ts';
import type { DaemonResponse } from '../../client/call.ts';
import { defineRequest, type View } from '../../client/request.ts';
import { type Command, positional } from '../../command.ts';
import {
  brief,
  type Cell,
  formatFields,
  instant,
  type Marked,
  type Shown,
  type Tone,
  toned,
  whole,
} from '../../format.ts';
import type { Hint } from '../../hint.ts';
import {
  type ExplainedOperation,
  type OperationObject,
  explainedOperation,
} from '../../../wire/operation.ts';

export const outboxPath = '/admin/v1/outbox';

export const decisions = ['retry', 'drop', 'confirm'] as const;

/** Shows a change, what its state means, and the possible decisions. */
export const operationView: View<ExplainedOperation> = { schema: explainedOperation, show: formatOperation };

/** Declares a command that decides what happens to a change. */
export function defineDecision(
  decision: (typeof decisions)[number],
  describe: string,
  meaning: string,
): Command {
  return defineRequest({
    command: `${decision} <id>`,
    describe,
    builder: { id: positional('Id of the change', 'operation') },
    examples: [[`latchkey outbox ${decision} OPERATION_ID`, meaning]],
    request: ({ id }) => ({ method: 'POST', path: `${operationPath(id)}/${decision}` }),
    view: operationView,
  });
}

export function operationPath(id: string): string {
  return `${outboxPath}/${encodeURIComponent(id)}`;
}

/** Whether nothing happens to a change until a person decides. */
export function needsDecision({ state, held }: OperationObject): boolean {
  return held || state === 'dead' || state === 'conflicted';
}

export function formatState(operation: OperationObject): Marked {
  const { state, held } = operation;
  return toned(held ? `${state}, held` : state, needsDecision(operation) ? 'bad' : tones[state]);
}

const tones: Record<OperationState, Tone> = {
  pending: 'warning',
  in_flight: 'warning',
  uncertain: 'warning',
  delivered: 'good',
  inferred: 'warning',
  conflicted: 'bad',
  dead: 'bad',
  cancelled: 'faint',
  dropped: 'faint',
};

function formatOperation(operation: ExplainedOperation, _answer: DaemonResponse, hint: Hint): Shown {
  const { meaning, waits, shown: license, expected_uses: expected } = operation.explanation;
  const base = operation.base_uses === null ? null : counted(operation.base_uses, 'use');
  const fields = formatFields({
    id: whole(operation.id),
    change: operation.kind,
    [operation.license_key === null ? 'about' : 'license key']: whole(operation.subject),
    state: formatState(operation),
    meaning,
    ...Object.fromEntries(waits.map(formatWait)),
    created: instant(operation.created_at),
    attempts: operation.attempts,
    'sent on': expected === null ? base : `${base}; applied alone, it makes ${counted(expected, 'use')}`,
    'store said':
      license === null
        ? null
        : [
            `${counted(license.uses, 'use')}, ${license.enabled ? 'enabled' : 'disabled'}, `,
            brief(license.at),
          ],
    'last error': operation.last_error,
  });
  const possible = decisions.filter((decision) => operation.explanation.decisions[decision] !== null);
  if (possible.length === 0) return fields;
  return [
    fields,
    'What you can do (recorded in the audit log):',
    formatFields(
      Object.fromEntries(possible.map((decision) => [decision, operation.explanation.decisions[decision]])),
    ),
    possible.map((decision) => hint(`outbox ${decision} ${operation.id}`)).join('\n'),
  ];
}

/** Several waits need different field names: all but the first have blanks. */
function formatWait(
  { detail, until }: ExplainedOperation['explanation']['waits'][number],
  index: number,
): [string, Cell] {
  const name = index === 0 ? 'waits for' : ' '.repeat(index);
  return [name, until === null ? detail : [`${detail}: `, brief(until)]];
}
