import { operationStates } from '../domain/operation.ts';
import { ask } from './ask.ts';
import { type CommandEntry, defineCommand, entry, operand } from './command.ts';
import { formatFields } from './layout.ts';
import { formatPage, takePage } from './page.ts';
import { operation, operationList } from './wire.ts';

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
            operations.map(({ id, kind, license_key, state, attempts, next_at, last_error }) => ({
              id,
              change: kind,
              'license key': license_key,
              state,
              attempts,
              next: next_at,
              'last error': last_error,
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
    ask(
      args,
      output,
      { path: `${path}/${encodeURIComponent(args.id)}` },
      {
        schema: operation,
        show: ({ id, kind, license_key, state, attempts, base_uses, created_at, next_at, last_error }) =>
          formatFields({
            id,
            change: kind,
            'license key': license_key,
            state,
            attempts,
            'sent on uses': base_uses,
            created: created_at,
            next: next_at,
            'last error': last_error,
          }),
      },
    ),
);

/** `outbox …`. */
export const outboxCommands: readonly CommandEntry[] = [
  entry('list', 'List the changes that are not finished', list),
  entry('show <id>', 'Show a change', show),
];
