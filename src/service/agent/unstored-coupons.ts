import { defaultAccountId } from '../../domain/access/principal.ts';
import { couponState, foldCouponCode, type Coupon, type CouponFilter } from '../../domain/checkout/coupon.ts';
import type { Page } from '../../domain/page.ts';
import type { Reader } from '../tables.ts';

/** More coupons that wait for their creation are not looked at. */
const maxProvisional = 1_000;

/**
 * A page of the upstream's list as the upstream has just said, for a list that the store could not take. The coupons that
 * the upstream has not seen yet are in the list as well, as they are in the mirror.
 */
export function listUnstored(
  reader: Reader,
  listed: readonly Coupon[],
  query: Page & CouponFilter,
): { coupons: Coupon[]; total: number } {
  // Their ids are negative, so that they come first.
  const first = reader.mirror.list({ limit: maxProvisional, offset: 0 });
  const provisional = first.filter(({ confirmedAt }) => confirmedAt === null).map(({ coupon }) => coupon);
  const found = [...provisional, ...listed].filter((coupon) => passes(reader, coupon, query));
  const sorted = found.toSorted((one, other) => one.id - other.id);
  return { coupons: sorted.slice(query.offset, query.offset + query.limit), total: sorted.length };
}

function passes(reader: Reader, coupon: Coupon, { code, productKey, state }: CouponFilter): boolean {
  const ofProduct = coupon.scope.type === 'single' ? coupon.scope.productKey : null;
  if (code !== undefined && foldCouponCode(coupon.code) !== foldCouponCode(code)) return false;
  if (productKey !== undefined && ofProduct !== productKey) return false;
  if (state === undefined) return true;
  const redemptions = reader.redemptions.countOf(defaultAccountId, coupon.id);
  return couponState(coupon, redemptions, state.at) === state.is;
}
