import { defaultAccountId } from '../../../domain/access/principal.ts';
import { foldCouponCode, type Coupon } from '../../../domain/checkout/coupon.ts';
import type { Reader, Transaction } from '../../tables.ts';
import type { MirroredCoupon } from '../../agent/tables.ts';

/** So many of the mirror are looked through at once. */
const pageSize = 100;

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

/** The provisional id of the coupon with this code of which a person said that it was created; null: there is none. */
export function provisionalIdToAdopt(reader: Reader, code: string): number | null {
  const known = reader.mirror.provisionalByCode(code);
  return known !== null && waitsForList(reader, known) ? known.coupon.id : null;
}

/** Removes those of which a person said that they were created, and that are not in the whole list of the upstream. */
export function forgetUnlisted(transaction: Transaction): void {
  const unlisted = provisionalCoupons(transaction).filter((each) => waitsForList(transaction, each));
  for (const { coupon } of unlisted) transaction.mirror.remove(coupon.id);
}

/** Those that the upstream has not shown; their ids are the smallest of the mirror. */
function provisionalCoupons({ mirror }: Reader): readonly MirroredCoupon[] {
  const provisional: MirroredCoupon[] = [];
  for (;;) {
    const page = mirror.list({ limit: pageSize, offset: provisional.length });
    const found = page.filter(({ confirmedAt }) => confirmedAt === null);
    provisional.push(...found);
    if (found.length < pageSize) return provisional;
  }
}

/** Whether no operation will tell what became of a provisional coupon. */
function waitsForList({ operations }: Reader, { coupon, confirmedAt }: MirroredCoupon): boolean {
  return confirmedAt === null && operations.tail(foldCouponCode(coupon.code), 'coupon') === null;
}
