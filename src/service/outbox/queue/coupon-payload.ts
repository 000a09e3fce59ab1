import type { Coupon, CouponTerms } from '../../../domain/checkout/coupon.ts';
import { formatDatetime } from '../../../domain/datetime.ts';
import type { Operation } from '../../../domain/outbox/operation.ts';

/** What a queued creation carries: the provisional coupon, whose terms are what is sent. */
export function couponPayload(coupon: Coupon): string {
  return JSON.stringify(coupon);
}

/** The provisional coupon of a queued creation; throws on an operation that is none. */
export function provisionalCoupon(operation: Operation): Coupon {
  if (operation.kind !== 'create_coupon' || operation.payload === null) {
    throw new Error(`operation ${operation.id} creates no coupon`);
  }
  return JSON.parse(operation.payload) as Coupon;
}

/** Whether a coupon of the upstream has every term that was sent: then it is the one that was created. */
export function hasTerms(coupon: Coupon, terms: CouponTerms): boolean {
  const kept: (keyof CouponTerms)[] = ['minimumPurchaseAmount', 'usageLimit', 'notes'];
  return (
    coupon.code === terms.code &&
    JSON.stringify(sorted(coupon.scope)) === JSON.stringify(sorted(terms.scope)) &&
    JSON.stringify(sorted(coupon.discount)) === JSON.stringify(sorted(terms.discount)) &&
    kept.every((name) => terms[name] === null || coupon[name] === terms[name]) &&
    isSameTime(coupon.startAt, terms.startAt) &&
    isSameTime(coupon.endAt, terms.endAt)
  );
}

/** Datetimes are sent in whole seconds, and so they are listed. */
function isSameTime(listed: number | null, sent: number | null): boolean {
  if (sent === null) return true;
  return listed !== null && formatDatetime(listed) === formatDatetime(sent);
}

function sorted(value: object): [string, unknown][] {
  return Object.entries(value).toSorted(([one], [other]) => one.localeCompare(other));
}
