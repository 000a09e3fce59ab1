import { requestAndShow } from '../../client/request.ts';
import { defineCommand, positional, textOption } from '../../command.ts';
import { withSecretOf } from '../../values.ts';
import { newSecretView, productsPath } from './product.ts';

export const command = defineCommand({
  command: 'add <name>',
  describe: 'Add a product',
  builder: {
    name: positional('Name'),
    recurring: { type: 'boolean', describe: 'Has a recurring price' },
    account: textOption('Account id', 'account'),
    key: textOption('Product key of an existing store'),
    'secret-file': textOption('File with its secret from an existing store', 'file'),
  },
  examples: [
    ['latchkey product add "My editor"', 'creates a key and a secret'],
    ['latchkey product add "My editor" --key RGsF --secret-file rgsf.secret', 'keeps what callers know'],
  ],
  handler: async (args, output) =>
    await withSecretOf(args.secretFile, output, async (secret) => {
      const { name, recurring, account, key } = args;
      const json = { name, recurring, account_id: account, product_key: key, secret };
      return await requestAndShow(args, output, { method: 'POST', path: productsPath, json }, newSecretView);
    }),
});
