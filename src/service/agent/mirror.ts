import type { Coupon } from '../../domain/checkout/coupon.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { confirmTime } from '../lifecycle/clock-mark.ts';
import { adoptCoupon, forgetUnlisted, provisionalIdToAdopt } from '../outbox/settlement/created-coupon.ts';
import type { Reader, Transaction } from '../tables.ts';

const mirroredAt = 'coupons_mirrored_at';

/** When the whole list of the upstream was last mirrored (epoch ms); null: never. */
export function mirroredSince(reader: Reader): number | null {
  const at = reader.settings.get(mirroredAt);
  return at === null ? null : Number(at);
}

export type MirrorCoupons = {
  coupons: readonly Coupon[];
  confirmedAt: number;
  /** `list`: what the upstream's list shows; `whole`: and what is not among these is not there. */
  extent: 'some' | 'list' | 'whole';
};

/** Keeps what the upstream said of some or all of its coupons. */
export function mirrorCoupons(
  transaction: Transaction,
  { coupons, confirmedAt, extent }: MirrorCoupons,
): Result<null> {
  confirmTime(transaction, confirmedAt);
  for (const coupon of coupons) {
    const provisionalId = provisionalIdToAdopt(transaction, coupon.code);
    if (provisionalId === null) transaction.mirror.put({ coupon, confirmedAt });
    else adoptCoupon(transaction, provisionalId, { coupon, confirmedAt });
  }
  if (extent === 'whole') forgetUnlisted(transaction);
  if (extent !== 'some') transaction.settings.set(mirroredAt, String(confirmedAt));
  return done(null);
}

/** Removes a coupon for which the upstream answered 404. */
export function forgetCoupon(transaction: Transaction, { id }: { id: number }): Result<null> {
  transaction.mirror.remove(id);
  return done(null);
}
