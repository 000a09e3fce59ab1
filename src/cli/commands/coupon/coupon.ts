import { answeredAt, type View } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { type Block, type Cell, formatCents, formatFields, instant } from '../../format.ts';
import type { Output } from '../../output.ts';
import { type CouponObject, type CountedCouponObject, couponObject } from '../../../wire/coupon.ts';

/** Where coupons are read and created (specification 4). */
export const couponsPath = '/api/v2/coupons';
/** The same coupons, with their redemptions. */
export const countedCouponsPath = '/agent/v1/coupons';

export const termOptions = {
  'usage-limit': textOption('How often it can be redeemed'),
  'minimum-purchase-amount': textOption('Of the cart, such as 60.00 or 6000c (cents)'),
  'start-date': textOption('A date (its start, UTC), a datetime, or a time from now, such as 24h'),
  'end-date': textOption('A date (its end, UTC), a datetime, or a time from now, such as 30d'),
  notes: textOption('A note for yourself'),
} as const;

export const couponView: View<CouponObject> = {
  schema: couponObject,
  show: (coupon, _answer, hint) =>
    isProvisional(coupon)
      ? [
          formatCoupon(coupon),
          `Provisional: the store has not created it yet. Until then its id is ${coupon.id}, which keeps working.\nTo see progress: ${hint('outbox list')}`,
        ]
      : formatCoupon(coupon),
};

export function couponPath(id: string): string {
  return `/admin/v1/coupons/${encodeURIComponent(id)}`;
}

/** An agent gives negative ids to coupons that the store has not created yet. */
export function isProvisional({ id }: CouponObject): boolean {
  return id < 0;
}

/** Warns that a coupon has already ended, by the daemon's clock. The command still succeeds. */
export function warnOfPast(output: Output): NonNullable<View<CouponObject>['exitCode']> {
  return ({ end_date: end }, answer) => {
    if (end !== null && Date.parse(end) < answeredAt(answer))
      output.printError([`latchkey: this coupon can never apply: it ended in the past, at ${end}`]);
    return exitCode.done;
  };
}

export function formatCoupon(coupon: CouponObject, more: Readonly<Record<string, Cell>> = {}): Block {
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

export function formatState(state: string): string {
  return state.replaceAll('_', ' ');
}

export function formatCount({ redemptions, usage_limit: limit, scope }: CountedCouponObject): string {
  const where = scope === 'this_agent' ? ' here' : '';
  return limit === null ? `${redemptions}${where}` : `${redemptions} of ${limit}${where}`;
}

export function formatDiscount({ percent_off: percent, amount_off: cents }: CouponObject): string {
  return percent === null ? formatCents(cents ?? 0) : `${percent}%`;
}

export function formatScope({ product_key: product, collection_id: collection }: CouponObject): string {
  if (product !== null) return `product ${product}`;
  return collection === null ? 'all products' : `collection ${collection}`;
}
