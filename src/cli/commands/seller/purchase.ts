import { z } from 'zod';
import { type AnswerView, ask, type Asked, inquire, toldAt } from '../../client/ask.ts';
import { defineFilteredList } from '../../client/list.ts';
import { type Command, defineCommand, operand, type GlobalOptions, textOption } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { formatFields, instant, whole } from '../../format.ts';
import { hintFor } from '../../hint.ts';
import { readDates } from '../../instant.ts';
import { type License, license, licenseFields } from '../license-view.ts';

/** Where purchases are recorded. */
export const purchasesPath = '/admin/v1/purchases';

interface Purchase {
  readonly purchase_id: string;
  readonly date: string;
  readonly refunded: boolean;
  readonly refunded_at: string | null;
  readonly license: License;
}

const purchase: z.ZodType<Purchase> = z.object({
  purchase_id: z.string(),
  date: z.string(),
  refunded: z.boolean(),
  refunded_at: z.string().nullable(),
  license,
});

/** Shows a purchase and its license. */
export const purchaseView: AnswerView<Purchase> = {
  schema: purchase,
  show: ({ purchase_id, date, refunded_at, license: issued }) =>
    formatFields({
      purchase: whole(purchase_id),
      sold: instant(date),
      refunded: instant(refunded_at) ?? 'no',
      ...licenseFields(issued),
    }),
};

/** `purchase list`. */
export const listPurchases: Command = defineFilteredList(
  {
    path: purchasesPath,
    member: 'purchases',
    item: purchase,
    row: ({ purchase_id, date, refunded_at, license: sold }) => ({
      purchase: whole(purchase_id),
      sold: instant(date),
      'license key': whole(sold.license_key),
      product: sold.product_link,
      buyer: sold.buyer_email,
      refunded: instant(refunded_at),
    }),
  },
  {
    options: (syntax) =>
      syntax
        .options({
          key: textOption('Only of this license key'),
          email: textOption('Only of this buyer, in any letter case'),
          product: textOption('Only of this product', 'product'),
          account: textOption('Only of this account', 'account'),
          since: textOption(
            'Only from this time on: a datetime, a date (its start, UTC), or how long ago, such as 24h',
          ),
          until: textOption('Only until this time: a datetime, a date (its end, UTC), or how long ago'),
          refunded: { choices: ['true', 'false'], describe: 'Only refunded ones, or only the others' },
        })
        .example('latchkey purchase list --email buyer@example.com', 'when you do not know the id'),
    query: ({ key, email, product, account, since, until, refunded, all }) => {
      const { dates } = readDates({ since, until }, { since: 'start', until: 'end' }, 'before');
      // What is sold while the pages are read would move what follows from one page to the next.
      const end = dates.until ?? (all ? new Date().toISOString() : undefined);
      const found = { license_key: key, buyer_email: email, product_key: product, account_id: account };
      return { ...found, since: dates.since, until: end, refunded };
    },
  },
);

/** `purchase show`. */
export const showPurchase: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('purchase', operand('Purchase id, or the license key that was sold', 'purchase'))
      .example('latchkey purchase show ABCDE-FGHJK-LMNPQ-RSTUV', 'by the license key'),
  async (args, output) => {
    const found = await findPurchase(args, args.purchase);
    if (!found.ok) return found.complain(output);
    if (args.json) output.printJson(found.raw);
    else await output.show(purchaseView.show(found.data, found.answer, hintFor(args)), toldAt(found.answer));
    return exitCode.done;
  },
);

/** `purchase refund`. */
export const refundPurchase: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('purchase', operand('Purchase id, or the license key that was sold', 'purchase'))
      .example('latchkey purchase refund ABCDE-FGHJK-LMNPQ-RSTUV', 'by the license key')
      .epilogue('No money is moved: refund the payment with your payment provider.'),
  async (args, output) => {
    const found = await findPurchase(args, args.purchase);
    if (!found.ok) return found.complain(output);
    const { purchase_id: id, refunded_at: before } = found.data;
    if (before !== null) output.complain([`latchkey: it was refunded already, at ${before}`]);
    return await ask(args, output, { method: 'POST', path: `${pathOf(id)}/refund` }, purchaseView);
  },
);

/** Finds a purchase by its id, or else by the license key that was sold. */
async function findPurchase(options: GlobalOptions, named: string): Promise<Asked<Purchase>> {
  const byId = await inquire(options, { path: pathOf(named) }, purchase);
  if (byId.ok || byId.problem !== 'purchase_not_found') return byId;
  const query = { license_key: named };
  const schema = z.object({ purchases: z.array(purchase) });
  const byKey = await inquire(options, { path: purchasesPath, query }, schema);
  if (!byKey.ok) return byKey;
  const [only] = byKey.data.purchases;
  // The list has the whole object, so that nothing more is to be asked.
  const [raw] = (byKey.raw as { purchases: unknown[] }).purchases;
  if (only !== undefined) return { ok: true, data: only, raw, answer: byKey.answer };
  return {
    ...byId,
    complain(output) {
      const code = byId.complain(output);
      output.complain([
        `Nor was it a license key that was sold. Look for it: ${hintFor(options)('purchase list --email …')}`,
      ]);
      return code;
    },
  };
}

function pathOf(id: string): string {
  return `${purchasesPath}/${encodeURIComponent(id)}`;
}
