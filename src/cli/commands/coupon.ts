import { ask } from '../client/ask.ts';
import { type Command, type CommandEntry, defineCommand, entry, operand, textOption } from '../command.ts';
import { formatCents, formatFields } from '../text/layout.ts';
import { formatPage, takePage } from '../text/page.ts';
import { type Coupon, coupon, couponList } from '../client/wire.ts';

const path = '/api/v2/coupons';

const create = defineCommand(
  (yargs) =>
    yargs
      .options({
        code: { ...textOption('What the customer enters'), demandOption: true },
        type: {
          choices: ['single', 'multi', 'collection'] as const,
          demandOption: true,
          describe: 'Holds for a product, for all, or for a collection',
        },
        'percent-off': textOption('Above 0, at most 100'),
        'amount-off': textOption('In cents'),
        product: textOption('Product key, with --type single'),
        collection: textOption('Collection id, with --type collection'),
        'usage-limit': textOption('Redemptions before it becomes invalid'),
        'minimum-purchase-amount': textOption('In cents'),
        'start-date': textOption('RFC 3339'),
        'end-date': textOption('RFC 3339'),
        notes: textOption('For yourself'),
      })
      .example('$0 coupon create --code SPRING --type multi --percent-off 20', '')
      .example('$0 coupon create --code FIVE --type single --product RGsF --amount-off 500', ''),
  (args, output) => {
    const form = {
      code: args.code,
      coupon_type: args.type,
      percent_off: args.percentOff,
      amount_off: args.amountOff,
      product_key: args.product,
      collection_id: args.collection,
      usage_limit: args.usageLimit,
      minimum_purchase_amount: args.minimumPurchaseAmount,
      start_date: args.startDate,
      end_date: args.endDate,
      notes: args.notes,
    };
    return ask(args, output, { method: 'POST', path, form }, { schema: coupon, show: formatCoupon });
  },
);

const list = defineCommand(takePage, (args, output) =>
  ask(
    args,
    output,
    { path, query: { limit: args.limit, offset: args.offset } },
    {
      schema: couponList,
      show: ({ coupons }, answer) => formatPage(coupons.map(summarize), answer, args.offset),
    },
  ),
);

const get: Command = defineCommand(
  (yargs) => yargs.positional('id', operand('Coupon id')),
  (args, output) =>
    ask(
      args,
      output,
      { path: `${path}/${encodeURIComponent(args.id)}` },
      { schema: coupon, show: formatCoupon },
    ),
);

/** `coupon …`. */
export const couponCommands: readonly CommandEntry[] = [
  entry('create', 'Create a coupon', create),
  entry('list', 'List coupons', list),
  entry('get <id>', 'Show a coupon', get),
];

function summarize(given: Coupon): {
  id: number;
  code: string;
  off: string;
  for: string;
  until: string | null;
} {
  const { id, code, end_date: until } = given;
  return { id, code, off: formatDiscount(given), for: formatScope(given), until };
}

function formatCoupon(given: Coupon): string {
  const minimum = given.minimum_purchase_amount;
  return formatFields({
    coupon: given.id,
    code: given.code,
    off: formatDiscount(given),
    for: formatScope(given),
    from: given.start_date,
    until: given.end_date,
    minimum: minimum === null ? null : formatCents(minimum),
    'usage limit': given.usage_limit,
    notes: given.notes,
  });
}

function formatDiscount({ percent_off: percent, amount_off: cents }: Coupon): string {
  return percent === null ? formatCents(cents ?? 0) : `${percent}%`;
}

function formatScope({ product_key: product, collection_id: collection }: Coupon): string {
  if (product !== null) return `product ${product}`;
  return collection === null ? 'all products' : `collection ${collection}`;
}
