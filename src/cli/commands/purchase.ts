import { purchaseList, type PurchaseObject, purchaseObject } from '../../wire/catalogue.ts';
import {
  answeredAt,
  defineList,
  pathOf,
  request,
  requestAndShow,
  type Result,
  type View,
} from '../client/request.ts';
import { CommandError, defineCommand, type GlobalOptions, positional, textOption } from '../command.ts';
import { formatFields, instant, whole } from '../format.ts';
import { hintFor, quoteForShell } from '../hint.ts';
import { readDates } from '../values.ts';
import { stateWord } from './license-terms.ts';
import { licenseFields } from './license-view.ts';

export const purchasesPath = '/admin/v1/purchases';

const purchasePositional = positional('Purchase id, or the license key that was sold', 'purchase');

export const purchaseView: View<PurchaseObject> = {
  schema: purchaseObject,
  show: ({ purchase_id, date, refunded_at, license: issued }) =>
    formatFields({
      purchase: whole(purchase_id),
      sold: instant(date),
      refunded: instant(refunded_at) ?? 'no',
      ...licenseFields(issued),
    }),
};

export const commands = [
  defineList({
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
      search: textOption(
        'Only those with this text in the key or in the e-mail address, from three characters on',
      ),
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
        state: stateWord(sold),
        refunded: instant(refunded_at),
      }),
    },
    query: ({ key, email, product, account, since, until, refunded, search, all }) => {
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
        search,
      };
    },
  }),
  defineCommand({
    command: 'show <purchase>',
    describe: 'Show a purchase, by its id or license key',
    builder: { purchase: purchasePositional },
    examples: [['latchkey purchase show ABCDE-FGHJK-LMNPQ-RSTUV', 'by the license key']],
    handler: async (args, output) => {
      const { data, raw, answer } = await findPurchase(args, args.purchase);
      return await output.result(raw, purchaseView.show(data, answer, hintFor(args)), answeredAt(answer));
    },
  }),
  defineCommand({
    command: 'refund <purchase>',
    describe: 'Refund a purchase, which disables its license key',
    builder: { purchase: purchasePositional },
    examples: [['latchkey purchase refund ABCDE-FGHJK-LMNPQ-RSTUV', 'by the license key']],
    epilogue: 'No money is moved: refund the payment with your payment provider.',
    handler: async (args, output) => {
      const { purchase_id: id, refunded_at: before } = (await findPurchase(args, args.purchase)).data;
      if (before !== null) output.printError([`latchkey: already refunded on ${before}`]);
      const call = { method: 'POST', path: `${pathOf(purchasesPath, id)}/refund` } as const;
      return await requestAndShow(args, output, call, purchaseView);
    },
  }),
];

/** Finds a purchase by its id, or else by its license key. */
async function findPurchase(options: GlobalOptions, idOrKey: string): Promise<Result<PurchaseObject>> {
  try {
    return await request(options, { path: pathOf(purchasesPath, idOrKey) }, purchaseObject);
  } catch (error) {
    if (!(error instanceof CommandError) || error.refusal?.code !== 'purchase_not_found') throw error;
    const query = { license_key: idOrKey };
    const byKey = await request(options, { path: purchasesPath, query }, purchaseList);
    const [data] = byKey.data.purchases;
    const [raw] = (byKey.raw as { purchases: unknown[] }).purchases;
    if (data !== undefined) return { data, raw, answer: byKey.answer };
    const hint = hintFor(options);
    const advice = [
      'No purchase has this license key, either.',
      `If the key was replaced, this shows the new key: ${hint(`license show ${quoteForShell(idOrKey)}`)}`,
      `To search: ${hint('purchase list --email …')}`,
    ];
    throw new CommandError([...error.lines, ...advice], error.code, error.refusal);
  }
}
