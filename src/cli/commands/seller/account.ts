import { z } from 'zod';
import { type AnswerView, ask, defineRequest } from '../../client/ask.ts';
import { defineList } from '../../client/list.ts';
import { type Command, defineCommand, operand, textOption } from '../../command.ts';
import { formatFields, instant, whole } from '../../format.ts';
import { keepOldOption, readKeepOld } from '../../keep-old.ts';
import { withSecretOf } from '../../secret-option.ts';

const path = '/admin/v1/accounts';

const account = z.object({
  account_id: z.string(),
  name: z.string(),
  // Only when it was just made.
  api_key: z.string().optional(),
  old_key_until: z.string().optional(),
});

const withNewKey: AnswerView<z.infer<typeof account>> = {
  schema: account,
  show({ account_id, name, api_key, old_key_until: until }) {
    const fields = {
      account: whole(account_id),
      name,
      'api key': api_key,
      'old one until': instant(until),
    };
    return [formatFields(fields), 'The API key is shown only this once.'];
  },
};

/** `account add`. */
export const addAccount: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('name', operand('Name'))
      .option('api-key-file', textOption('File with its API key from an existing store', 'file'))
      .example('latchkey account add Shop', 'makes an API key')
      .example('latchkey account add Shop --api-key-file api.key', 'keeps the key that callers know'),
  (args, output) =>
    withSecretOf(args.apiKeyFile, output, async (apiKey) => {
      const json = { name: args.name, api_key: apiKey };
      return await ask(args, output, { method: 'POST', path, json }, withNewKey);
    }),
);

/** `account roll`. */
export const rollApiKey: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('account', operand('Account id', 'account'))
      .option('keep-old', keepOldOption)
      .example('latchkey account roll default --keep-old 24h', 'callers have a day to change to the new one'),
  (args) => ({
    method: 'POST',
    path: `${path}/${encodeURIComponent(args.account)}/roll-key`,
    json: { keep_old_s: readKeepOld(args.keepOld) },
  }),
  withNewKey,
);

/** `account list`. */
export const listAccounts: Command = defineList(
  {
    path,
    member: 'accounts',
    item: account,
    row: ({ account_id, name }) => ({ account: whole(account_id), name }),
  },
  (syntax) => syntax.example('latchkey account list', 'with the id that other commands take'),
);
