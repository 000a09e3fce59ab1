import { defineList } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { instant, whole } from '../../format.ts';
import { licensesPath } from './license.ts';
import { type ListedLicenseObject, listedLicenseObject } from '../../../wire/license.ts';

export const command = defineList({
  command: 'list',
  describe: 'List licenses',
  builder: {
    product: textOption('Only of this product', 'product'),
    account: textOption('Only of this account', 'account'),
    email: textOption('Only of this buyer, in any letter case'),
    enabled: { choices: ['true', 'false'], describe: 'Only valid keys, or only disabled keys' },
    search: textOption('Only those whose key or buyer begins with this text'),
  },
  examples: [
    ['latchkey license list --product RGsF --enabled false', 'the disabled keys of a product'],
    ['latchkey license list --search jo', 'the licenses of john@example.com, and of others'],
  ],
  epilogue: 'An agent lists the licenses that it has stored.',
  list: {
    path: licensesPath,
    member: 'licenses',
    item: listedLicenseObject,
    row: (listed) => ({
      'license key': whole(listed.license_key),
      state: stateOf(listed),
      uses: listed.uses,
      product: listed.product_link,
      buyer: listed.buyer_email,
      created: instant(listed.date),
      ...(listed.freshness !== null && { freshness: listed.freshness }),
    }),
  },
  query: ({ product, account, enabled, email, search }) => ({
    product_key: product,
    account_id: account,
    enabled,
    buyer_email: email,
    search,
  }),
});

function stateOf({ state, refunded_at }: ListedLicenseObject): string {
  if (state !== 'enabled') return state;
  return refunded_at === null ? 'valid' : 'valid, refunded';
}
