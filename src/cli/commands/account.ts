import { z } from 'zod';
import { type AnswerView, defineRequest } from '../client/ask.ts';
import { defineList } from '../client/list.ts';
import { type Command, operand } from '../command.ts';
import { formatFields } from '../format.ts';

const path = '/admin/v1/accounts';

const account = z.object({
  account_id: z.string(),
  name: z.string(),
  // Only when it was just made.
  api_key: z.string().optional(),
});

const withNewKey: AnswerView<z.infer<typeof account>> = {
  schema: account,
  show({ account_id, name, api_key }) {
    const fields = formatFields({ account: account_id, name, 'api key': api_key });
    return `${fields}\n\nThe API key is shown only this once.`;
  },
};

/** `account add`. */
export const addAccount: Command = defineRequest(
  (yargs) => yargs.positional('name', operand('Name')),
  ({ name }) => ({ method: 'POST', path, json: { name } }),
  withNewKey,
);

/** `account roll`. */
export const rollApiKey: Command = defineRequest(
  (yargs) => yargs.positional('account', operand('Account id')),
  (args) => ({ method: 'POST', path: `${path}/${encodeURIComponent(args.account)}/roll-key` }),
  withNewKey,
);

/** `account list`. */
export const listAccounts: Command = defineList({
  path,
  member: 'accounts',
  item: account,
  row: ({ account_id, name }) => ({ account: account_id, name }),
});
