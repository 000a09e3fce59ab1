import { z } from 'zod';
import { type AnswerView, ask, defineRequest, toldAt } from '../../client/ask.ts';
import { defineFilteredList } from '../../client/list.ts';
import { type Command, defineCommand, operand, textOption } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { type Block, type Cell, formatCents, formatFields, instant } from '../../format.ts';
import { readDates, sayDates } from '../../instant.ts';
import type { Output } from '../../output.ts';

/** Where coupons are read and created. */
export const couponPath = '/api/v2/coupons';
/** The same coupons, with how often they are redeemed. */
const countedPath = '/agent/v1/coupons';

/** A coupon object (specification 2.1). */
export type Coupon = {
  id: number;
  coupon_type: string;
  percent_off: number | null;
  amount_off: number | null;
  code: string;
  start_date: string | null;
  end_date: string | null;
  product_key: string | null;
  collection_id: string | null;
  minimum_purchase_amount: number | null;
  usage_limit: number | null;
  notes: string | null;
};

const shape = z.object({
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

export const coupon: z.ZodType<Coupon> = shape;

const countedCoupon = shape.extend({
  redemptions: z.int(),
  state: z.string(),
  scope: z.string().optional(),
});
const redeemedCoupon = countedCoupon.extend({ orders: z.array(z.string()) });

type CountedCoupon = z.infer<typeof countedCoupon>;
type RedeemedCoupon = z.infer<typeof redeemedCoupon>;

/** Shows a coupon. */
export const couponView: AnswerView<Coupon> = {
  schema: coupon,
  show: (given, _answer, hint) =>
    isProvisional(given)
      ? [
          formatCoupon(given),
          `Provisional: the store has not created it yet. Until then its id is ${given.id}, which goes on working.\nHow far it is: ${hint('outbox list')}`,
        ]
      : formatCoupon(given),
};

/** The store gives ids above 0; an agent gives others to those that wait for it. */
function isProvisional({ id }: Coupon): boolean {
  return id < 0;
}

/** `coupon create`. */
export const createCoupon: Command = defineCommand(
  (syntax) =>
    syntax
      .options({
        code: { ...textOption('What the customer enters'), required: true },
        type: {
          choices: ['single', 'multi', 'collection'] as const,
          required: true,
          describe: 'Holds for a product, for all, or for a collection',
        },
        'percent-off': textOption('Percentage, above 0 and at most 100'),
        'amount-off': textOption('Discount in cents'),
        product: textOption('Product key, with --type single', 'product'),
        collection: textOption('Collection id, with --type collection', 'collection'),
        'usage-limit': textOption('How often it can be redeemed'),
        'minimum-purchase-amount': textOption('In cents'),
        'start-date': textOption('A date (its start, UTC), a datetime, or a time from now, such as 24h'),
        'end-date': textOption('A date (its end, UTC), a datetime, or a time from now, such as 30d'),
        notes: textOption('A note for yourself'),
      })
      .example('latchkey coupon create --code SPRING --type multi --percent-off 20', '20 % off everything')
      .example(
        'latchkey coupon create --code FIVE --type single --product RGsF --amount-off 500',
        '5.00 off a product',
      ),
  async (args, output) => {
    const { dates, taken } = readDates(
      { 'start-date': args.startDate, 'end-date': args.endDate },
      { 'start-date': 'start', 'end-date': 'end' },
      'after',
    );
    sayDates(taken, output);
    const form = {
      code: args.code,
      coupon_type: args.type,
      percent_off: args.percentOff,
      amount_off: args.amountOff,
      product_key: args.product,
      collection_id: args.collection,
      usage_limit: args.usageLimit,
      minimum_purchase_amount: args.minimumPurchaseAmount,
      start_date: dates['start-date'],
      end_date: dates['end-date'],
      notes: args.notes,
    };
    const view = { ...couponView, judge: warnOfPast(output) };
    return await ask(args, output, { method: 'POST', path: couponPath, form }, view);
  },
);

/** Warns of a coupon that can never apply, by the daemon's clock; it is no failure. */
export function warnOfPast(output: Output): NonNullable<AnswerView<Coupon>['judge']> {
  return ({ end_date: end }, answer) => {
    if (end !== null && Date.parse(end) < toldAt(answer))
      output.complain([`latchkey: this coupon can never apply: it ended in the past, at ${end}`]);
    return exitCode.done;
  };
}

/** `coupon list`. */
export const listCoupons: Command = defineFilteredList(
  {
    path: countedPath,
    member: 'coupons',
    item: countedCoupon,
    row: (each) => ({
      id: each.id,
      code: each.code,
      state: isProvisional(each) ? `${formatState(each.state)}, provisional` : formatState(each.state),
      off: formatDiscount(each),
      for: formatScope(each),
      until: instant(each.end_date),
      redeemed: formatCount(each),
    }),
  },
  {
    options: (syntax) =>
      syntax
        .options({
          code: textOption('Only the one with this code'),
          product: textOption('Only of this product', 'product'),
          state: { choices: ['scheduled', 'active', 'used_up', 'ended'], describe: 'Only in this state' },
        })
        .example('latchkey coupon list --state active', 'those that apply now'),
    query: ({ code, product, state }) => ({ code, product_key: product, state }),
  },
);

/** `coupon show`. */
export const showCoupon: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('id', operand('Coupon id', 'coupon'))
      .example('latchkey coupon show 7', 'and which orders redeemed it'),
  ({ id }) => ({ path: `${countedPath}/${encodeURIComponent(id)}` }),
  { schema: redeemedCoupon, show: formatRedeemed },
);

/** Shows a coupon, and what more is known of it. */
export function formatCoupon(given: Coupon, more: Readonly<Record<string, Cell>> = {}): Block {
  const minimum = given.minimum_purchase_amount;
  return formatFields({
    coupon: given.id,
    code: given.code,
    off: formatDiscount(given),
    for: formatScope(given),
    from: instant(given.start_date),
    until: instant(given.end_date),
    minimum: minimum === null ? null : formatCents(minimum),
    'usage limit': given.usage_limit,
    notes: given.notes,
    ...more,
  });
}

function formatRedeemed({ orders, ...given }: RedeemedCoupon): Block {
  return formatCoupon(given, {
    state: formatState(given.state),
    redeemed: formatCount(given),
    'last by': orders.length === 0 ? null : orders.join(', '),
  });
}

function formatState(state: string): string {
  return state.replaceAll('_', ' ');
}

function formatCount({ redemptions, usage_limit: limit, scope }: CountedCoupon): string {
  const where = scope === 'this_agent' ? ' here' : '';
  return limit === null ? `${redemptions}${where}` : `${redemptions} of ${limit}${where}`;
}

function formatDiscount({ percent_off: percent, amount_off: cents }: Coupon): string {
  return percent === null ? formatCents(cents ?? 0) : `${percent}%`;
}

function formatScope({ product_key: product, collection_id: collection }: Coupon): string {
  if (product !== null) return `product ${product}`;
  return collection === null ? 'all products' : `collection ${collection}`;
}
