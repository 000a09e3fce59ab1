import { z } from 'zod';
import { type AnswerView, defineRequest } from '../client/ask.ts';
import { defineList } from '../client/list.ts';
import { type Command, operand, textOption } from '../command.ts';
import { type Cell, formatCents, formatFields } from '../format.ts';

const path = '/api/v2/coupons';
/** The same coupons, with how often they are redeemed. */
const countedPath = '/agent/v1/coupons';

/** Specification 2.1. */
const coupon = z.object({
  id: z.int(),
  coupon_type: z.string(),
  percent_off: z.number().nullable(),
  amount_off: z.int().nullable(),
  code: z.string(),
  start_date: z.string().nullable(),
  end_date: z.string().nullable(),
  product_key: z.string().nullable(),
  collection_id: z.string().nullable(),
  minimum_purchase_amount: z.int().nullable(),
  usage_limit: z.int().nullable(),
  notes: z.string().nullable(),
});

const countedCoupon = coupon.extend({ redemptions: z.int() });
const redeemedCoupon = countedCoupon.extend({ orders: z.array(z.string()) });

type Coupon = z.infer<typeof coupon>;
type RedeemedCoupon = z.infer<typeof redeemedCoupon>;

const view: AnswerView<Coupon> = { schema: coupon, show: (given) => formatCoupon(given) };

/** `coupon create`. */
export const createCoupon: Command = defineRequest(
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
  (args) => ({
    method: 'POST',
    path,
    form: {
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
    },
  }),
  view,
);

/** `coupon list`. */
export const listCoupons: Command = defineList({
  path: countedPath,
  member: 'coupons',
  item: countedCoupon,
  row: (each) => ({
    id: each.id,
    code: each.code,
    off: formatDiscount(each),
    for: formatScope(each),
    until: each.end_date,
    redeemed: formatCount(each.redemptions, each.usage_limit),
  }),
});

/** `coupon get`. */
export const getCoupon: Command = defineRequest(
  (yargs) => yargs.positional('id', operand('Coupon id')),
  ({ id }) => ({ path: `${countedPath}/${encodeURIComponent(id)}` }),
  { schema: redeemedCoupon, show: formatRedeemed },
);

function formatCoupon(given: Coupon, more: Readonly<Record<string, Cell>> = {}): string {
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
    ...more,
  });
}

function formatRedeemed({ redemptions, orders, ...given }: RedeemedCoupon): string {
  return formatCoupon(given, {
    redeemed: formatCount(redemptions, given.usage_limit),
    'last by': orders.length === 0 ? null : orders.join(', '),
  });
}

function formatCount(redemptions: number, limit: number | null): string {
  return limit === null ? String(redemptions) : `${redemptions} of ${limit}`;
}

function formatDiscount({ percent_off: percent, amount_off: cents }: Coupon): string {
  return percent === null ? formatCents(cents ?? 0) : `${percent}%`;
}

function formatScope({ product_key: product, collection_id: collection }: Coupon): string {
  if (product !== null) return `product ${product}`;
  return collection === null ? 'all products' : `collection ${collection}`;
}
