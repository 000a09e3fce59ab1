import { defineRequest } from '../../client/request.ts';
import { positional, textOption } from '../../command.ts';
import { readSecret } from '../../values.ts';
import { leaseTermsOptions, newSecretView, productsPath, readLeaseTerms } from './product.ts';

export const command = defineRequest({
  command: 'add <name>',
  describe: 'Add a product',
  builder: {
    name: positional('Name'),
    recurring: { type: 'boolean', describe: 'Has a recurring price' },
    account: textOption('Account id', 'account'),
    key: textOption('Product key of an existing store'),
    'secret-file': textOption('File with its secret from an existing store', 'file'),
    ...leaseTermsOptions,
  },
  examples: [
    ['latchkey product add "My editor"', 'creates a key and a secret'],
    ['latchkey product add "My editor" --key RGsF --secret-file rgsf.secret', 'keeps what callers know'],
  ],
  request: ({ name, recurring, account, key, secretFile, ...terms }) => ({
    method: 'POST',
    path: productsPath,
    json: {
      name,
      recurring,
      account_id: account,
      product_key: key,
      secret: readSecret(secretFile),
      ...readLeaseTerms(terms),
    },
  }),
  view: newSecretView,
});
