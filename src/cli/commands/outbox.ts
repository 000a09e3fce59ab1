import { z } from 'zod';
import { operationStates } from '../../domain/operation.ts';
import { type AnswerView, defineRequest } from '../client/ask.ts';
import type { Answer } from '../client/call.ts';
import { defineFilteredList } from '../client/list.ts';
import { type Command, operand } from '../command.ts';
import { type Block, formatFields, instant, whole } from '../format.ts';
import type { Hint } from '../hint.ts';

const path = '/admin/v1/outbox';

const operation = z.object({
  id: z.string(),
  kind: z.string(),
  license_key: z.string().nullable(),
  state: z.string(),
  held: z.boolean(),
  attempts: z.int(),
  base_uses: z.int().nullable(),
  created_at: z.string(),
  next_at: z.string().nullable(),
  last_error: z.string().nullable(),
});

type Operation = z.infer<typeof operation>;

const view: AnswerView<Operation> = { schema: operation, show: formatOperation };

/** `outbox list`. */
export const listOutbox: Command = defineFilteredList(
  {
    path,
    member: 'operations',
    item: operation,
    row: (each) => ({
      id: whole(each.id),
      change: each.kind,
      'license key': whole(each.license_key),
      state: formatState(each),
      attempts: each.attempts,
      next: instant(each.next_at),
      'last error': each.last_error,
    }),
  },
  {
    options: (syntax) =>
      syntax
        .option('state', { choices: operationStates, describe: 'Default: all that is not finished' })
        .example('latchkey outbox list --state dead', 'changes that the upstream refused'),
    query: ({ state }) => ({ state }),
  },
);

/** `outbox show`. */
export const showOperation: Command = defineRequest(
  (syntax) => syntax.positional('id', operand('Id of the change', 'operation')),
  ({ id }) => ({ path: pathOf(id) }),
  view,
);

/** `outbox retry`. */
export const retryOperation: Command = decisionCommand('retry');

/** `outbox drop`. */
export const dropOperation: Command = decisionCommand('drop');

/** `outbox confirm`. */
export const confirmOperation: Command = decisionCommand('confirm');

function decisionCommand(decision: 'retry' | 'drop' | 'confirm'): Command {
  return defineRequest(
    (syntax) => syntax.positional('id', operand('Id of the change', 'operation')),
    ({ id }) => ({ method: 'POST', path: `${pathOf(id)}/${decision}` }),
    view,
  );
}

function pathOf(id: string): string {
  return `${path}/${encodeURIComponent(id)}`;
}

function formatState({ state, held }: Operation): string {
  return held ? `${state}, held` : state;
}

function formatOperation(it: Operation, _answer: Answer, hint: Hint): Block {
  const isForPerson = it.held || it.state === 'dead' || it.state === 'conflicted';
  return formatFields({
    id: it.id,
    change: it.kind,
    'license key': it.license_key,
    state: formatState(it),
    attempts: it.attempts,
    'sent on uses': it.base_uses,
    created: instant(it.created_at),
    next: instant(it.next_at),
    'last error': it.last_error,
    'to do': isForPerson ? `${hint(`outbox retry ${it.id}`)}, or drop, or confirm (it was applied)` : null,
  });
}
