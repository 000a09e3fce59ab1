import { defaultAccountId } from '../../../domain/access/principal.ts';
import { foldCouponCode, type Coupon } from '../../../domain/checkout/coupon.ts';
import type { MirroredCoupon, Reader, Transaction } from '../../tables.ts';

/** Lets a provisional id mean the coupon that the upstream has created, also for the orders that redeemed it. */
export function adoptCoupon(
  { mirror, redemptions }: Transaction,
  provisionalId: number,
  created: MirroredCoupon,
): void {
  mirror.remove(provisionalId);
  mirror.put(created);
  mirror.alias(provisionalId, created.coupon.id);
  redemptions.renumberCoupon(defaultAccountId, provisionalId, created.coupon.id);
}

/** A person says that a provisional coupon was created: it means the upstream's with its code, once that is listed. */
export function adoptOnceListed(transaction: Transaction, coupon: Coupon): void {
  const { mirror } = transaction;
  const sameCode = mirror.list({ limit: 10, offset: 0 }, { code: coupon.code });
  const listed = sameCode.find(({ confirmedAt }) => confirmedAt !== null);
  if (listed === undefined) mirror.put({ coupon, confirmedAt: null });
  else adoptCoupon(transaction, coupon.id, listed);
}

/** The provisional coupon of which a person said that it was created, and that has this code. */
export function couponToAdopt(reader: Reader, code: string): Coupon | null {
  const known = reader.mirror.provisionalByCode(code);
  return known !== null && waitsForList(reader, known) ? known.coupon : null;
}

/** Removes those of which a person said that they were created, and that are not in the whole list of the upstream. */
export function forgetUnlisted(transaction: Transaction): void {
  const { mirror } = transaction;
  const isProvisional = ({ confirmedAt }: MirroredCoupon): boolean => confirmedAt === null;
  for (let offset = 0; ;) {
    // Their ids are the smallest.
    const page = mirror.list({ limit: 100, offset }).filter(isProvisional);
    const unlisted = page.filter((each) => waitsForList(transaction, each));
    for (const { coupon } of unlisted) mirror.remove(coupon.id);
    if (page.length < 100) return;
    offset += page.length - unlisted.length;
  }
}

/** Whether no operation will tell what became of a provisional coupon. */
function waitsForList({ operations }: Reader, { coupon, confirmedAt }: MirroredCoupon): boolean {
  return confirmedAt === null && operations.tail(foldCouponCode(coupon.code), 'coupon') === null;
}
