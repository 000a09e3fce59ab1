import { z } from 'zod';
import { operationStates, type OperationState } from '../../domain/outbox/operation.ts';
import { counted } from '../../domain/text.ts';
import { type AnswerView, defineRequest } from '../client/ask.ts';
import type { Answer } from '../client/call.ts';
import { defineFilteredList } from '../client/list.ts';
import { type Command, operand, textOption } from '../command.ts';
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
} from '../format.ts';
import type { Hint } from '../hint.ts';

/** Where the changes are listed. */
export const outboxPath = '/admin/v1/outbox';

/** A change as the outbox lists it. */
export interface Operation {
  readonly id: string;
  readonly kind: string;
  readonly license_key: string | null;
  readonly subject: string;
  readonly state: OperationState;
  readonly held: boolean;
  readonly attempts: number;
  readonly base_uses: number | null;
  readonly created_at: string;
  readonly next_at: string | null;
  readonly last_error: string | null;
}

const shape = z.object({
  id: z.string(),
  kind: z.string(),
  license_key: z.string().nullable(),
  subject: z.string(),
  state: z.enum(operationStates),
  held: z.boolean(),
  attempts: z.int(),
  base_uses: z.int().nullable(),
  created_at: z.string(),
  next_at: z.string().nullable(),
  last_error: z.string().nullable(),
});

export const operation: z.ZodType<Operation> = shape;

const wait = z.object({ detail: z.string(), until: z.string().nullable() });

type Wait = z.infer<typeof wait>;

const decisions = ['retry', 'drop', 'confirm'] as const;

const explainedOperation = shape.extend({
  explanation: z.object({
    meaning: z.string(),
    waits: z.array(wait),
    expected_uses: z.int().nullable(),
    shown: z.object({ uses: z.int(), enabled: z.boolean(), at: z.string() }).nullable(),
    decisions: z.record(z.enum(decisions), z.string().nullable()),
  }),
});

type ExplainedOperation = z.infer<typeof explainedOperation>;

const view: AnswerView<ExplainedOperation> = { schema: explainedOperation, show: formatExplanation };

/** `outbox list`. */
export const listOutbox: Command = defineFilteredList(
  {
    path: outboxPath,
    member: 'operations',
    item: operation,
    row: (each) => ({
      id: whole(each.id),
      change: each.kind,
      about: each.subject,
      state: formatState(each),
      attempts: each.attempts,
      next: instant(each.next_at),
      'last error': each.last_error,
    }),
  },
  {
    options: (syntax) =>
      syntax
        .options({
          state: {
            choices: operationStates,
            describe: 'Only in this state; default: all that are not finished',
          },
          key: textOption('Only unfinished changes of this license key'),
        })
        .example('latchkey outbox list --state dead', 'changes that the upstream refused'),
    query: ({ state, key }) => ({ state, license_key: key }),
  },
);

/** `outbox show`. */
export const showOperation: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('id', operand('Id of the change', 'operation'))
      .example('latchkey outbox show OPERATION_ID', 'its state, and what each decision would do'),
  ({ id }) => ({ path: pathOf(id) }),
  view,
);

/** `outbox retry`. */
export const retryOperation: Command = decisionCommand(
  'retry',
  'when the cause of the refusal is fixed, or it was not applied',
);

/** `outbox drop`. */
export const dropOperation: Command = decisionCommand('drop', 'when it should no longer be applied');

/** `outbox confirm`. */
export const confirmOperation: Command = decisionCommand(
  'confirm',
  'when the store shows that it was applied',
);

function decisionCommand(decision: (typeof decisions)[number], says: string): Command {
  return defineRequest(
    (syntax) =>
      syntax
        .positional('id', operand('Id of the change', 'operation'))
        .example(`latchkey outbox ${decision} OPERATION_ID`, says),
    ({ id }) => ({ method: 'POST', path: `${pathOf(id)}/${decision}` }),
    view,
  );
}

function pathOf(id: string): string {
  return `${outboxPath}/${encodeURIComponent(id)}`;
}

function formatState({ state, held }: Operation): Marked {
  const isForPerson = held || state === 'dead' || state === 'conflicted';
  return toned(held ? `${state}, held` : state, tones[isForPerson ? 'person' : state]);
}

const tones: Record<OperationState | 'person', Tone> = {
  person: 'bad',
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

/** Explains how a change stands, and what can be decided about it. */
function formatExplanation(it: ExplainedOperation, _answer: Answer, hint: Hint): Shown {
  const { meaning, waits, shown, expected_uses: expected } = it.explanation;
  const base = it.base_uses === null ? null : counted(it.base_uses, 'use');
  const fields = formatFields({
    id: whole(it.id),
    change: it.kind,
    [it.license_key === null ? 'about' : 'license key']: whole(it.subject),
    state: formatState(it),
    meaning,
    ...Object.fromEntries(waits.map(formatWait)),
    created: instant(it.created_at),
    attempts: it.attempts,
    'sent on': expected === null ? base : `${base}; applied alone, it makes ${counted(expected, 'use')}`,
    'store said':
      shown === null ? null : [`${counted(shown.uses, 'use')}, ${formatEnabled(shown)}, `, brief(shown.at)],
    'last error': it.last_error,
  });
  const open = decisions.filter((decision) => it.explanation.decisions[decision] !== null);
  if (open.length === 0) return fields;
  return [
    fields,
    'What can be decided; each decision is on record:',
    formatFields(Object.fromEntries(open.map((decision) => [decision, it.explanation.decisions[decision]]))),
    open.map((decision) => hint(`outbox ${decision} ${it.id}`)).join('\n'),
  ];
}

/** A wait under a name of its own: there may be several. */
function formatWait({ detail, until }: Wait, index: number): [string, Cell] {
  const name = index === 0 ? 'waits for' : ' '.repeat(index);
  return [name, until === null ? detail : [`${detail}: `, brief(until)]];
}

function formatEnabled({ enabled }: { enabled: boolean }): string {
  return enabled ? 'enabled' : 'disabled';
}
