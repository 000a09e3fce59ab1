import { operationStates } from '../../domain/operation.ts';
import { ask } from '../client/ask.ts';
import { type Command, type CommandEntry, defineCommand, entry, operand } from '../command.ts';
import { formatFields } from '../text/layout.ts';
import { formatPage, takePage } from '../text/page.ts';
import { type Operation, operation, operationList } from '../client/wire.ts';

const path = '/admin/v1/outbox';

const list = defineCommand(
  (yargs) =>
    takePage(yargs)
      .option('state', { choices: operationStates, describe: 'Default: all that is not finished' })
      .example('$0 outbox list --state dead', 'changes that the upstream refused'),
  (args, output) =>
    ask(
      args,
      output,
      { path, query: { state: args.state, limit: args.limit, offset: args.offset } },
      {
        schema: operationList,
        show: ({ operations }, answer) =>
          formatPage(
            operations.map((each) => ({
              id: each.id,
              change: each.kind,
              'license key': each.license_key,
              state: formatState(each),
              attempts: each.attempts,
              next: each.next_at,
              'last error': each.last_error,
            })),
            answer,
            args.offset,
          ),
      },
    ),
);

const show = defineCommand(
  (yargs) => yargs.positional('id', operand('Id of the change')),
  (args, output) =>
    ask(args, output, { path: pathOf(args.id) }, { schema: operation, show: formatOperation }),
);

function decide(decision: 'retry' | 'drop' | 'confirm'): Command {
  return defineCommand(
    (yargs) => yargs.positional('id', operand('Id of the change')),
    (args, output) =>
      ask(
        args,
        output,
        { method: 'POST', path: `${pathOf(args.id)}/${decision}` },
        { schema: operation, show: formatOperation },
      ),
  );
}

/** `outbox …`. */
export const outboxCommands: readonly CommandEntry[] = [
  entry('list', 'List the changes that are not finished', list),
  entry('show <id>', 'Show a change', show),
  entry('retry <id>', 'Send a change again that is dead, conflicted or in doubt', decide('retry')),
  entry('drop <id>', 'Give a change up: it is not sent any more', decide('drop')),
  entry('confirm <id>', 'Say that a change was applied at the upstream', decide('confirm')),
];

function pathOf(id: string): string {
  return `${path}/${encodeURIComponent(id)}`;
}

function formatState({ state, held }: Operation): string {
  return held ? `${state}, held` : state;
}

function formatOperation(it: Operation): string {
  const isForPerson = it.held || it.state === 'dead' || it.state === 'conflicted';
  return formatFields({
    id: it.id,
    change: it.kind,
    'license key': it.license_key,
    state: formatState(it),
    attempts: it.attempts,
    'sent on uses': it.base_uses,
    created: it.created_at,
    next: it.next_at,
    'last error': it.last_error,
    'to do': isForPerson ? 'latchkey outbox retry, drop or confirm (it was applied)' : null,
  });
}
