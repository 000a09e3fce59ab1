import type { Coupon } from '../../domain/checkout/coupon.ts';
import { defaultAccountId } from '../../domain/access/principal.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { confirmTime } from '../lifecycle/clock-mark.ts';
import type { Reader, Transaction } from '../tables.ts';
import { adoptCoupon, forgetUnlisted, provisionalIdToAdopt } from '../outbox/provisional-coupon.ts';

const mirroredAt = 'coupons_mirrored_at';

/** When the whole list of the upstream was last mirrored (epoch ms); null: never. */
export function mirroredSince(reader: Reader): number | null {
  const at = reader.settings.get(mirroredAt);
  return at === null || at === '' ? null : Number(at);
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
  const former = formerCoupons(transaction);
  for (const coupon of coupons) {
    recognizeCoupon(transaction, former, coupon);
    recognizeInstance(transaction, coupon);
    const provisionalId = provisionalIdToAdopt(transaction, coupon.code);
    if (provisionalId === null) transaction.mirror.put({ coupon, confirmedAt });
    else adoptCoupon(transaction, provisionalId, { coupon, confirmedAt });
  }
  if (extent === 'whole') forgetUnlisted(transaction);
  if (former.size > 0) keepFormerCoupons(transaction, extent === 'whole' ? new Map() : former);
  if (extent !== 'some') transaction.settings.set(mirroredAt, String(confirmedAt));
  return done(null);
}

/** A coupon of a former upstream: its redemptions are kept under a provisional id, and other ones meant it. */
type FormerCoupon = { code: string; provisionalId: number; aliases: readonly number[] };

const formerSetting = 'former_coupons';

/** By the id that each had at the former upstream. */
function formerCoupons({ settings }: Reader): Map<number, FormerCoupon> {
  return new Map(JSON.parse(settings.get(formerSetting) || '[]') as [number, FormerCoupon][]);
}

function keepFormerCoupons({ settings }: Transaction, former: ReadonlyMap<number, FormerCoupon>): void {
  settings.set(formerSetting, JSON.stringify([...former]));
}

/**
 * Forgets the coupons of the former upstream: another one may have other coupons with their ids. Redemptions stay on
 * record, and count again once the upstream lists a coupon with the same id and code: it is the same one at another
 * address.
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
  keepFormerCoupons(transaction, former);
  settings.set(mirroredAt, '');
}

/** Keeps the redemptions of a coupon under an id that no coupon has. */
function separateRedemptions({ mirror, redemptions }: Transaction, id: number): number {
  const provisionalId = mirror.provisionalId();
  redemptions.renumberCoupon(defaultAccountId, id, provisionalId);
  return provisionalId;
}

/** From when coupons are that another instance of the upstream has shown: they are asked for before they are told. */
const unconfirmed = 0;

/** Another instance answers for the upstream (it was restored, or replaced): it may have other coupons. */
export function questionCoupons({ mirror, settings }: Transaction): void {
  mirror.ageShown(unconfirmed);
  if ((settings.get(mirroredAt) ?? '') !== '') settings.set(mirroredAt, String(unconfirmed));
}

/** Takes a coupon with another code than the former instance had under its id for another coupon. */
function recognizeInstance(transaction: Transaction, { id, code }: Coupon): void {
  const { mirror } = transaction;
  const known = mirror.get(id);
  if (known === null || known.confirmedAt !== unconfirmed || known.coupon.code === code) return;
  for (const alias of mirror.aliases().filter((each) => each.id === id)) {
    mirror.alias(alias.provisionalId, null);
  }
  separateRedemptions(transaction, id);
}

/** Gives a coupon of the former upstream that is listed by this one its redemptions and provisional ids again. */
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
