import { defineRequest } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { readInstant } from '../../values.ts';
import { purchasesPath, purchaseView } from '../purchase/purchase.ts';

export const command = defineRequest({
  command: 'issue',
  describe: 'Record a purchase and issue its license key',
  builder: {
    product: { ...textOption('Product key', 'product'), demandOption: true },
    email: { ...textOption('E-mail address of the buyer'), demandOption: true },
    key: textOption('License key; default: a new one'),
    date: textOption('When it was sold: a datetime, a date (its start, UTC), or how long ago; default: now'),
    uses: { type: 'number', describe: 'Uses so far' },
    enabled: { choices: ['true', 'false'], describe: 'Whether the key is valid' },
  },
  examples: [['latchkey license issue --product RGsF --email buyer@example.com', 'records a purchase']],
  request: ({ product, email, key, date, uses, enabled }) => ({
    method: 'POST',
    path: purchasesPath,
    json: {
      product_key: product,
      buyer_email: email,
      license_key: key,
      date: readInstant('date', date, 'before'),
      uses,
      enabled,
    },
  }),
  view: purchaseView,
});
