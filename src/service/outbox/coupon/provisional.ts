import { foldCouponCode, type CouponTerms, type Coupon } from '../../../domain/checkout/coupon.ts';
import type { Transaction, Reader } from '../../tables.ts';
import type { MirroredCoupon } from '../../agent/tables.ts';
import { formatDatetime } from '../../../domain/time.ts';
import { defaultAccountId } from '../../../domain/access/principal.ts';

/**
 * Whether an upstream coupon has every term that was sent: then it is the coupon that the operation created. `isExact`: the
 * upstream, a Latchkey, adds no terms.
 */
export function hasTerms(coupon: Coupon, terms: CouponTerms, isExact: boolean): boolean {
  const isSame = (name: keyof CouponTerms): boolean =>
    coupon[name] === terms[name] || (!isExact && terms[name] === null);
  const kept: (keyof CouponTerms)[] = ['minimumPurchaseAmount', 'usageLimit', 'notes'];
  return (
    coupon.code === terms.code &&
    JSON.stringify(sorted(coupon.scope)) === JSON.stringify(sorted(terms.scope)) &&
    JSON.stringify(sorted(coupon.discount)) === JSON.stringify(sorted(terms.discount)) &&
    kept.every(isSame) &&
    isSameTime(coupon.startAt, terms.startAt, isExact) &&
    isSameTime(coupon.endAt, terms.endAt, isExact)
  );
}

/** Datetimes are sent and listed in whole seconds. */
function isSameTime(listed: number | null, sent: number | null, isExact: boolean): boolean {
  if (sent === null) return !isExact || listed === null;
  return listed !== null && formatDatetime(listed) === formatDatetime(sent);
}

function sorted(value: object): [string, unknown][] {
  return Object.entries(value).toSorted(([one], [other]) => one.localeCompare(other));
}

/**
 * The upstream was restored, and has given the id of a coupon to another one: the redemptions of the former wait under its
 * provisional id, which is returned.
 */
export function separateCoupon({ mirror, redemptions }: Transaction, id: number): number {
  const provisionalIds = mirror.aliases().flatMap((alias) => (alias.id === id ? [alias.provisionalId] : []));
  for (const provisionalId of provisionalIds) mirror.alias(provisionalId, null);
  const provisionalId = provisionalIds[0] ?? mirror.provisionalId();
  redemptions.renumberCoupon(defaultAccountId, id, provisionalId);
  return provisionalId;
}

/**
 * Whether the upstream has shown a coupon with this code. Then only the upstream can decide about another one; a
 * waiting creation would be shown and redeemed instead of the upstream's coupon.
 */
export function isKnownCode({ mirror }: Reader, { code }: Coupon): boolean {
  return mirror.list({ limit: 10, offset: 0 }, { code }).some(({ confirmedAt }) => confirmedAt !== null);
}

/** How many coupons of the mirror are read at once. */
const pageSize = 100;

/** Points a provisional id at the created coupon, also in the orders that redeemed the provisional coupon. */
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

/**
 * After an operator confirms a creation: points the provisional id at the upstream's coupon with this code, once listed.
 */
export function adoptOnceListed(transaction: Transaction, coupon: Coupon): void {
  const { mirror } = transaction;
  const sameCode = mirror.list({ limit: 10, offset: 0 }, { code: coupon.code });
  const listed = sameCode.find(({ confirmedAt }) => confirmedAt !== null);
  if (listed === undefined) mirror.put({ coupon, confirmedAt: null });
  else adoptCoupon(transaction, coupon.id, listed);
}

/** The id of the provisional coupon with this code that an operator confirmed; null if there is none. */
export function provisionalIdToAdopt(reader: Reader, code: string): number | null {
  const known = reader.mirror.provisionalByCode(code);
  return known !== null && waitsForList(reader, known) ? known.coupon.id : null;
}

/** Removes the provisional coupons that an operator confirmed and that the upstream's complete list does not show. */
export function forgetUnlisted(transaction: Transaction): void {
  const unlisted = provisionalCoupons(transaction).filter((each) => waitsForList(transaction, each));
  for (const { coupon } of unlisted) transaction.mirror.remove(coupon.id);
}

/** The coupons that the upstream has not listed. They have the smallest ids of the mirror. */
function provisionalCoupons({ mirror }: Reader): readonly MirroredCoupon[] {
  const provisional: MirroredCoupon[] = [];
  for (;;) {
    const page = mirror.list({ limit: pageSize, offset: provisional.length });
    const found = page.filter(({ confirmedAt }) => confirmedAt === null);
    provisional.push(...found);
    if (found.length < pageSize) return provisional;
  }
}

/** Whether a coupon is provisional and has no unfinished operation: only the upstream's list decides about it. */
function waitsForList({ operations }: Reader, { coupon, confirmedAt }: MirroredCoupon): boolean {
  return confirmedAt === null && operations.tail(foldCouponCode(coupon.code), 'coupon') === null;
}
