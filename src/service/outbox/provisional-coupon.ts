import { foldCouponCode, type CouponTerms, type Coupon } from '../../domain/checkout/coupon.ts';
import type { Transaction, Reader } from '../tables.ts';
import type { MirroredCoupon } from '../agent/tables.ts';
import { formatDatetime } from '../../domain/datetime.ts';
import type { Operation } from '../../domain/outbox/operation.ts';
import { defaultAccountId } from '../../domain/access/principal.ts';

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
