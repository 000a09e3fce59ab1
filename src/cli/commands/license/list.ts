import { defineList } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { instant, whole } from '../../format.ts';
import { licensesPath } from './license.ts';
import { type SoldLicenseObject, soldLicenseObject } from '../../../wire/license.ts';

export const command = defineList({
  command: 'list',
  describe: 'List licenses',
  builder: {
    product: textOption('Only of this product', 'product'),
    account: textOption('Only of this account', 'account'),
    email: textOption('Only of this buyer, in any letter case'),
    enabled: { choices: ['true', 'false'], describe: 'Only valid keys, or only disabled keys' },
  },
  examples: [['latchkey license list --product RGsF --enabled false', 'the disabled keys of a product']],
  list: {
    path: licensesPath,
    member: 'licenses',
    item: soldLicenseObject,
    row: (listed) => ({
      'license key': whole(listed.license_key),
      state: stateOf(listed),
      uses: listed.uses,
      product: listed.product_link,
      buyer: listed.buyer_email,
      created: instant(listed.date),
    }),
  },
  query: ({ product, account, enabled, email }) => ({
    product_key: product,
    account_id: account,
    enabled,
    buyer_email: email,
  }),
});

function stateOf({ enabled, refunded_at }: SoldLicenseObject): string {
  if (enabled) return refunded_at === null ? 'valid' : 'valid, refunded';
  return refunded_at === null ? 'disabled' : 'refunded';
}
