import { requestAndShow } from '../../client/request.ts';
import { defineCommand, positional, textOption } from '../../command.ts';
import { withSecretOf } from '../../values.ts';
import { accountsPath, newApiKeyView } from './account.ts';

export const command = defineCommand({
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
  handler: async (args, output) =>
    await withSecretOf(args.apiKeyFile, output, async (apiKey) => {
      const json = { name: args.name, api_key: apiKey };
      return await requestAndShow(args, output, { method: 'POST', path: accountsPath, json }, newApiKeyView);
    }),
});
