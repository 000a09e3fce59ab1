import { leftOutHeader } from '../../domain/header-names.ts';
import { counted } from '../../domain/text.ts';
import {
  type CountedCouponObject,
  countedCouponObject,
  type CouponObject,
  couponObject,
  redeemedCouponObject,
} from '../../wire/coupon.ts';
import {
  answeredAt,
  defineList,
  defineRequest,
  pathOf,
  request,
  requestAndShow,
  type View,
} from '../client/request.ts';
import { defineCommand, positional, textOption, UsageError } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { type Block, type Cell, formatCents, formatFields, instant } from '../format.ts';
import { readCents, printDates, readDates } from '../values.ts';
import type { Output } from '../output.ts';
import { redemptionCommands } from './coupon-redemption.ts';

/** Where coupons are read and created (specification 4). */
const couponsPath = '/api/v2/coupons';

/** Where they are changed. */
const adminPath = '/admin/v1/coupons';

/** The same coupons, with their redemptions. */
const countedCouponsPath = '/agent/v1/coupons';

const couponPositional = positional('Coupon id', 'coupon');

const termOptions = {
  'usage-limit': textOption('How often it can be redeemed'),
  'minimum-purchase-amount': textOption('Of the cart, such as 60.00 or 6000c (cents)'),
  'start-date': textOption('A date (its start, UTC), a datetime, or a time from now, such as 24h'),
  'end-date': textOption('A date (its end, UTC), a datetime, or a time from now, such as 30d'),
  notes: textOption('A note for yourself'),
} as const;

const couponView: View<CouponObject> = {
  schema: couponObject,
  show: (coupon, _answer, hint) =>
    isProvisional(coupon)
      ? [
          formatCoupon(coupon),
          `Provisional: the store has not created it yet. Until then its id is ${coupon.id}, which keeps working.\nTo see progress: ${hint('outbox list')}`,
        ]
      : formatCoupon(coupon),
};

/** The value that removes a date, limit or note. */
const none = 'none';

export const commands = [
  defineCommand({
    command: 'create',
    describe: 'Create a coupon',
    builder: {
      code: { ...textOption('What the customer enters'), demandOption: true },
      type: {
        choices: ['single', 'multi', 'collection'],
        demandOption: true,
        describe: 'Applies to one product, all products or a collection',
      },
      'percent-off': textOption('Percentage, above 0 and at most 100'),
      'amount-off': textOption('Discount, such as 5.00 or 500c (cents)'),
      product: textOption('Product key, with --type single', 'product'),
      collection: textOption('Collection id, with --type collection', 'collection'),
      ...termOptions,
    },
    examples: [
      ['latchkey coupon create --code SPRING --type multi --percent-off 20', '20 % off everything'],
      [
        'latchkey coupon create --code FIVE --type single --product RGsF --amount-off 5.00',
        '5.00 off a product',
      ],
    ],
    handler: async (args, output) => {
      const { dates, plainDates } = readDates(
        { 'start-date': args.startDate, 'end-date': args.endDate },
        { 'start-date': 'start', 'end-date': 'end' },
        'after',
      );
      printDates(plainDates, output);
      const form = {
        code: args.code,
        coupon_type: args.type,
        percent_off: args.percentOff,
        amount_off: args.amountOff === undefined ? undefined : readCents('--amount-off ', args.amountOff),
        product_key: args.product,
        collection_id: args.collection,
        usage_limit: args.usageLimit,
        minimum_purchase_amount:
          args.minimumPurchaseAmount === undefined
            ? undefined
            : readCents('--minimum-purchase-amount ', args.minimumPurchaseAmount),
        start_date: dates['start-date'],
        end_date: dates['end-date'],
        notes: args.notes,
      };
      const view = { ...couponView, exitCode: warnOfPast(output) };
      return await requestAndShow(args, output, { method: 'POST', path: couponsPath, form }, view);
    },
  }),
  defineList({
    command: 'list',
    describe: 'List coupons',
    builder: {
      code: textOption('Only the coupon with this code'),
      product: textOption('Only of this product', 'product'),
      state: { choices: ['scheduled', 'active', 'used_up', 'ended'], describe: 'Only in this state' },
    },
    examples: [['latchkey coupon list --state active', 'the coupons that apply now']],
    list: {
      path: countedCouponsPath,
      member: 'coupons',
      item: countedCouponObject,
      warning: ({ headers }) => {
        const leftOut = Number(headers[leftOutHeader.toLowerCase()] ?? 0);
        const coupons = counted(leftOut, 'coupon');
        return leftOut > 0
          ? `${coupons} of the store cannot be read and are left out; the log says why`
          : null;
      },
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
    query: ({ code, product, state }) => ({ code, product_key: product, state }),
  }),
  defineRequest({
    command: 'show <id>',
    describe: 'Show a coupon',
    builder: { id: couponPositional },
    examples: [['latchkey coupon show 7', 'and which orders redeemed it']],
    request: ({ id }) => ({ path: pathOf(countedCouponsPath, id) }),
    view: {
      schema: redeemedCouponObject,
      show: ({ orders, ...coupon }) =>
        formatCoupon(coupon, {
          state: formatState(coupon.state),
          redeemed: formatCount(coupon),
          'last by': orders.length === 0 ? null : orders.join(', '),
        }),
    },
  }),
  ...redemptionCommands,
  /** Reads the coupon first, because the daemon takes it whole. */
  defineCommand({
    command: 'update <id>',
    describe: 'Change the dates, limits and notes of a coupon',
    builder: {
      id: couponPositional,
      ...termOptions,
      code: textOption('Only if it was never redeemed'),
      'percent-off': textOption('Only if it was never redeemed'),
      'amount-off': textOption('Such as 5.00 or 500c (cents); only if it was never redeemed'),
    },
    examples: [
      ['latchkey coupon update 7 --end-date 2026-12-31', 'until the end of that day in UTC'],
      ['latchkey coupon update 7 --usage-limit none', 'none removes a date, limit or note'],
    ],
    handler: async (args, output) => {
      if (args.percentOff !== undefined && args.amountOff !== undefined) {
        throw new UsageError('--percent-off and --amount-off cannot be combined');
      }
      const { startDate, endDate } = args;
      const { dates, plainDates } = readDates(
        { 'start-date': ignoreNone(startDate), 'end-date': ignoreNone(endDate) },
        { 'start-date': 'start', 'end-date': 'end' },
        'after',
      );
      const least = ignoreNone(args.minimumPurchaseAmount);
      const minimum =
        least === undefined || least === ''
          ? undefined
          : String(readCents('--minimum-purchase-amount ', least));
      const changes = {
        ...textChange('start_date', startDate, dates['start-date']),
        ...textChange('end_date', endDate, dates['end-date']),
        ...textChange('usage_limit', args.usageLimit),
        ...textChange('minimum_purchase_amount', args.minimumPurchaseAmount, minimum),
        ...textChange('notes', args.notes),
        // A coupon always has a code, and the code may be "none".
        ...(args.code !== undefined && { code: args.code }),
        ...(args.percentOff !== undefined && { percent_off: args.percentOff, amount_off: null }),
        ...(args.amountOff !== undefined && {
          amount_off: readCents('--amount-off ', args.amountOff),
          percent_off: null,
        }),
      };
      if (Object.keys(changes).length === 0)
        throw new UsageError('Give something to change, such as --end-date');
      const path = pathOf(couponsPath, args.id);
      const { id: _id, ...terms } = (await request(args, { path }, couponObject)).data;
      printDates(plainDates, output);
      const view = { ...couponView, exitCode: warnOfPast(output) };
      const call = {
        method: 'PUT',
        path: pathOf(adminPath, args.id),
        json: { ...terms, ...changes },
      } as const;
      return await requestAndShow(args, output, call, view);
    },
  }),
  defineRequest({
    command: 'end <id>',
    describe: 'End a coupon now',
    builder: { id: couponPositional },
    examples: [['latchkey coupon end 7', 'it no longer applies; past redemptions stay']],
    request: ({ id }) => ({ method: 'POST', path: `${pathOf(adminPath, id)}/end` }),
    view: couponView,
  }),
  defineRequest({
    command: 'delete <id>',
    describe: 'Delete a coupon that was never redeemed',
    builder: { id: couponPositional },
    examples: [['latchkey coupon delete 7', 'one that was created by mistake']],
    request: ({ id }) => ({ method: 'DELETE', path: pathOf(adminPath, id) }),
    view: { ...couponView, show: (deleted) => ['deleted', formatCoupon(deleted)] },
  }),
];

/** An agent gives negative ids to coupons that the store has not created yet. */
function isProvisional({ id }: CouponObject): boolean {
  return id < 0;
}

/** Warns that a coupon has already ended, by the daemon's clock. The command still succeeds. */
function warnOfPast(output: Output): NonNullable<View<CouponObject>['exitCode']> {
  return ({ end_date: end }, answer) => {
    if (end !== null && Date.parse(end) < answeredAt(answer))
      output.printError([`latchkey: this coupon can never apply: it ended in the past, at ${end}`]);
    return exitCode.done;
  };
}

function formatCoupon(coupon: CouponObject, more: Readonly<Record<string, Cell>> = {}): Block {
  const minimum = coupon.minimum_purchase_amount;
  return formatFields({
    coupon: coupon.id,
    code: coupon.code,
    off: formatDiscount(coupon),
    for: formatScope(coupon),
    from: instant(coupon.start_date),
    until: instant(coupon.end_date),
    minimum: minimum === null ? null : formatCents(minimum),
    'usage limit': coupon.usage_limit,
    notes: coupon.notes,
    ...more,
  });
}

function formatState(state: string): string {
  return state.replaceAll('_', ' ');
}

function formatCount({ redemptions, usage_limit: limit, scope }: CountedCouponObject): string {
  const where = scope === 'this_agent' ? ' here' : '';
  return limit === null ? `${redemptions}${where}` : `${redemptions} of ${limit}${where}`;
}

function formatDiscount({ percent_off: percent, amount_off: cents }: CouponObject): string {
  return percent === null ? formatCents(cents ?? 0) : `${percent}%`;
}

function formatScope({ product_key: product, collection_id: collection }: CouponObject): string {
  if (product !== null) return `product ${product}`;
  return collection === null ? 'all products' : `collection ${collection}`;
}

function ignoreNone(text: string | undefined): string | undefined {
  return text === none ? undefined : text;
}

/** The member of the coupon that an option changes; null removes the value. */
function textChange(
  member: string,
  text: string | undefined,
  value: string | undefined = text,
): Record<string, string | null> {
  if (text === undefined) return {};
  if (text === '')
    throw new UsageError(`--${member.replaceAll('_', '-')} is empty: use ${none} to remove the value`);
  return { [member]: text === none || value === undefined ? null : value };
}
