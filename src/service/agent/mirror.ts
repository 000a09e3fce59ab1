import type { Coupon } from '../../domain/checkout/coupon.ts';
import { defaultAccountId } from '../../domain/access/principal.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type { DateShift } from '../../domain/clock.ts';
import { confirmTime } from '../lifecycle/time-mark.ts';
import { isLatchkey } from '../outbox/upstream/identity.ts';
import type { Context } from '../ports.ts';
import type { Reader, Transaction } from '../tables.ts';
import {
  adoptCoupon,
  forgetUnlisted,
  provisionalIdToAdopt,
  separateCoupon,
} from '../outbox/coupon/provisional.ts';

const mirroredAt = 'coupons_mirrored_at';

/** When the upstream's whole list was last mirrored (epoch ms); null: never. */
export function mirroredSince(reader: Reader): number | null {
  const at = reader.settings.get(mirroredAt);
  return at === null || at === '' ? null : Number(at);
}

export type MirrorCoupons = {
  coupons: readonly Coupon[];
  confirmedAt: number;
  /** `whole`: the upstream has no other coupons. `list`: the list was read, but may not be complete. */
  extent: 'some' | 'list' | 'whole';
};

/** Stores coupons that the upstream sent. */
export function storeCoupons(
  transaction: Transaction,
  { coupons, confirmedAt: dated, extent }: MirrorCoupons,
  context: Pick<Context, 'now'>,
): Result<null> {
  const confirmedAt = confirmTime(transaction, dated, context);
  const former = formerCoupons(transaction);
  followCodes(transaction, { coupons, confirmedAt });
  for (const coupon of coupons) {
    recognizeCoupon(transaction, former, coupon);
    recognizeInstance(transaction, coupon);
    const provisionalId = provisionalIdToAdopt(transaction, coupon.code);
    if (provisionalId === null) transaction.mirror.put({ coupon, confirmedAt });
    else adoptCoupon(transaction, provisionalId, { coupon, confirmedAt });
  }
  if (extent === 'whole') forgetUnlisted(transaction);
  if (former.size > 0) storeFormerCoupons(transaction, extent === 'whole' ? new Map() : former);
  if (extent !== 'some') transaction.settings.set(mirroredAt, String(confirmedAt));
  return done(null);
}

/** A coupon of a former upstream. Its redemptions are kept under `provisionalId`; `aliases`: its earlier provisional ids. */
type FormerCoupon = { code: string; provisionalId: number; aliases: readonly number[] };

const formerSetting = 'former_coupons';

/** Keyed by the id at the former upstream. */
function formerCoupons({ settings }: Reader): Map<number, FormerCoupon> {
  return new Map(JSON.parse(settings.get(formerSetting) || '[]') as [number, FormerCoupon][]);
}

function storeFormerCoupons({ settings }: Transaction, former: ReadonlyMap<number, FormerCoupon>): void {
  settings.set(formerSetting, JSON.stringify([...former]));
}

/**
 * Forgets the coupons of the former upstream, because the new upstream may use the same ids for other coupons.
 * Redemptions are kept. They count again if the new upstream lists a coupon with the same id and code: then it is the
 * same upstream at another address.
 */
export function forgetCoupons(transaction: Transaction): void {
  const { mirror, settings } = transaction;
  const former = formerCoupons(transaction);
  const aliases = Map.groupBy(mirror.aliases(), ({ id }) => id);
  for (const id of new Set([...mirror.redeemedIds(), ...aliases.keys()])) {
    const known = mirror.get(id);
    const provisionalId = separateRedemptions(transaction, id);
    const ofCoupon = aliases.get(id)?.map((alias) => alias.provisionalId) ?? [];
    if (known !== null) former.set(id, { code: known.coupon.code, provisionalId, aliases: ofCoupon });
  }
  mirror.removeAliases();
  mirror.removeShown();
  forgetUnlisted(transaction);
  storeFormerCoupons(transaction, former);
  settings.set(mirroredAt, '');
}

/** Moves the redemptions of a coupon to an unused id. */
function separateRedemptions({ mirror, redemptions }: Transaction, id: number): number {
  const provisionalId = mirror.provisionalId();
  redemptions.renumberCoupon(defaultAccountId, id, provisionalId);
  return provisionalId;
}

/** `confirmedAt` of coupons from another instance of the upstream: so old that the upstream is asked first. */
const unconfirmed = 0;

/** The upstream was restored or replaced, and may have other coupons. */
export function expireCoupons({ mirror, settings }: Transaction): void {
  mirror.ageShown(unconfirmed);
  if ((settings.get(mirroredAt) ?? '') !== '') settings.set(mirroredAt, String(unconfirmed));
}

/** The dates of the coupons are corrected with the time. */
export function shiftMirroredDates({ mirror, settings }: Transaction, shift: DateShift): void {
  mirror.shiftDates(shift);
  const at = Number(settings.get(mirroredAt) || 0);
  if (at > (shift.after ?? 0) && at <= (shift.until ?? at)) settings.set(mirroredAt, String(at - shift.byMs));
}

/**
 * A Latchkey deletes no coupon that was redeemed. If it shows a code under another id, it was restored, or a Latchkey above it: the
 * redemptions and the provisional id go along with the code.
 */
function followCodes(
  transaction: Transaction,
  { coupons, confirmedAt }: Omit<MirrorCoupons, 'extent'>,
): void {
  if (!isLatchkey(transaction)) return;
  const { mirror } = transaction;
  // Coupons may have exchanged their ids: all leave their former ids first.
  const moved = coupons.flatMap((coupon) => {
    const { id, code } = mirror.byCode(coupon.code)?.coupon ?? coupon;
    if (id < 0 || id === coupon.id || code !== coupon.code) return [];
    mirror.remove(id);
    return [{ coupon, provisionalId: separateCoupon(transaction, id) }];
  });
  for (const { coupon, provisionalId } of moved) {
    if (mirror.get(coupon.id) !== null) separateCoupon(transaction, coupon.id);
    adoptCoupon(transaction, provisionalId, { coupon, confirmedAt });
  }
}

/** If the former instance had another code under this id, this is another coupon. */
function recognizeInstance(transaction: Transaction, { id, code }: Coupon): void {
  const known = transaction.mirror.get(id);
  if (known === null || known.confirmedAt !== unconfirmed || known.coupon.code === code) return;
  separateCoupon(transaction, id);
}

/** Restores the redemptions and aliases of a coupon that the former upstream had, too. */
function recognizeCoupon(
  { mirror, redemptions }: Transaction,
  former: Map<number, FormerCoupon>,
  { id, code }: Coupon,
): void {
  const known = former.get(id);
  former.delete(id);
  if (known?.code !== code) return;
  for (const alias of [known.provisionalId, ...known.aliases]) mirror.alias(alias, id);
  redemptions.renumberCoupon(defaultAccountId, known.provisionalId, id);
}

/** Removes a coupon for which the upstream answered 404. */
export function forgetCoupon(transaction: Transaction, { id }: { id: number }): Result<null> {
  transaction.mirror.remove(id);
  return done(null);
}
