import { defineList } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { instant, whole } from '../../format.ts';
import { readDates } from '../../values.ts';
import { purchasesPath } from './purchase.ts';
import { purchaseObject } from '../../../wire/purchase.ts';

export const command = defineList({
  command: 'list',
  describe: 'List purchases, or find them by key, e-mail address or date',
  builder: {
    key: textOption('Only of this license key'),
    email: textOption('Only of this buyer, in any letter case'),
    product: textOption('Only of this product', 'product'),
    account: textOption('Only of this account', 'account'),
    since: textOption(
      'Only from this time on: a datetime, a date (its start, UTC), or how long ago, such as 24h',
    ),
    until: textOption('Only until this time: a datetime, a date (its end, UTC), or how long ago'),
    refunded: { choices: ['true', 'false'], describe: 'Only refunded purchases, or only the others' },
  },
  examples: [['latchkey purchase list --email buyer@example.com', 'when you do not know the id']],
  list: {
    path: purchasesPath,
    member: 'purchases',
    item: purchaseObject,
    row: ({ purchase_id, date, refunded_at, license: sold }) => ({
      purchase: whole(purchase_id),
      sold: instant(date),
      'license key': whole(sold.license_key),
      product: sold.product_link,
      buyer: sold.buyer_email,
      refunded: instant(refunded_at),
    }),
  },
  query: ({ key, email, product, account, since, until, refunded, all }) => {
    const { dates } = readDates({ since, until }, { since: 'start', until: 'end' }, 'before');
    return {
      license_key: key,
      buyer_email: email,
      product_key: product,
      account_id: account,
      since: dates.since,
      // Purchases made while the pages are read would shift the later pages.
      until: dates.until ?? (all ? new Date().toISOString() : undefined),
      refunded,
    };
  },
});
