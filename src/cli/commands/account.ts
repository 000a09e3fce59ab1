import { ask } from '../client/ask.ts';
import { type CommandEntry, defineCommand, entry, operand } from '../command.ts';
import { formatFields } from '../text/layout.ts';
import { formatPage, takePage } from '../text/page.ts';
import { type Account, account, accountList } from '../client/wire.ts';

const path = '/admin/v1/accounts';

const add = defineCommand(
  (yargs) => yargs.positional('name', operand('Name')),
  (args, output) =>
    ask(
      args,
      output,
      { method: 'POST', path, json: { name: args.name } },
      { schema: account, show: formatAccount },
    ),
);

const roll = defineCommand(
  (yargs) => yargs.positional('account', operand('Account id')),
  (args, output) =>
    ask(
      args,
      output,
      { method: 'POST', path: `${path}/${encodeURIComponent(args.account)}/roll-key` },
      { schema: account, show: formatAccount },
    ),
);

const list = defineCommand(takePage, (args, output) =>
  ask(
    args,
    output,
    { path, query: { limit: args.limit, offset: args.offset } },
    {
      schema: accountList,
      show: ({ accounts }, answer) =>
        formatPage(
          accounts.map(({ account_id, name }) => ({ account: account_id, name })),
          answer,
          args.offset,
        ),
    },
  ),
);

/** `account …`. */
export const accountCommands: readonly CommandEntry[] = [
  entry('add <name>', 'Add an account and make its API key', add),
  entry('roll <account>', 'Make a new API key: the old one stops at once', roll),
  entry('list', 'List accounts', list),
];

function formatAccount({ account_id, name, api_key }: Account): string {
  const fields = formatFields({ account: account_id, name, 'api key': api_key });
  return `${fields}\n\nThe API key is shown only this once.`;
}
