import { defineRequest } from '../../client/request.ts';
import { positional, textOption } from '../../command.ts';
import { readSecret } from '../../values.ts';
import { accountsPath, newApiKeyView } from './account.ts';

export const command = defineRequest({
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
});
