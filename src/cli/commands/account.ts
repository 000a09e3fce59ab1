import { accountObject, type AccountObject } from '../../wire/access.ts';
import { defineList, defineRequest, pathOf, type View } from '../client/request.ts';
import { positional, textOption } from '../command.ts';
import { formatFields, instant, whole } from '../format.ts';
import { keepOldOption, readKeepOld, readSecret } from '../values.ts';

const accountsPath = '/admin/v1/accounts';

const newApiKeyView: View<AccountObject> = {
  schema: accountObject,
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

export const commands = [
  defineRequest({
    command: 'add <name>',
    describe: 'Add an account and its API key',
    builder: {
      name: positional('Name'),
      'api-key-file': textOption('File with its API key from an existing store', 'file'),
    },
    examples: [
      ['latchkey account add Shop', 'creates an API key'],
      ['latchkey account add Shop --api-key-file api.key', 'keeps the key that callers know'],
    ],
    request: ({ name, apiKeyFile }) => ({
      method: 'POST',
      path: accountsPath,
      json: { name, api_key: readSecret(apiKeyFile) },
    }),
    view: newApiKeyView,
  }),
  defineRequest({
    command: 'rotate <account>',
    describe: 'Create a new API key; the old one stops at once, or after a while',
    builder: { account: positional('Account id', 'account'), 'keep-old': keepOldOption },
    examples: [
      ['latchkey account rotate default --keep-old 24h', 'callers have a day to change to the new one'],
    ],
    request: (args) => ({
      method: 'POST',
      path: `${pathOf(accountsPath, args.account)}/rotate-key`,
      json: { keep_old_s: readKeepOld(args.keepOld) },
    }),
    view: newApiKeyView,
  }),
  defineList({
    command: 'list',
    describe: 'List accounts',
    builder: {},
    examples: [['latchkey account list', 'with the ids that other commands take']],
    list: {
      path: accountsPath,
      member: 'accounts',
      item: accountObject,
      row: ({ account_id, name }) => ({ account: whole(account_id), name }),
    },
  }),
];
