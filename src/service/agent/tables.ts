import type { LocalState, LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import type { PreloadKey, PreloadProgress } from '../../domain/agent/preload.ts';
import type { Coupon, CouponFilter } from '../../domain/checkout/coupon.ts';
import type { Page } from '../../domain/page.ts';
import type { RecordCounts } from '../status.ts';

/** A coupon as an agent keeps it: `confirmedAt` (epoch ms) is null while its negative id is provisional. */
export type MirroredCoupon = { coupon: Coupon; confirmedAt: number | null };

/** The upstream's coupons as an agent last saw them, with those that the upstream has not seen yet. */
export interface MirrorReads {
  /** A provisional id keeps finding the coupon after the upstream has given the real one. */
  get(id: number): MirroredCoupon | null;
  /** The one that a customer means: what the upstream has shown comes before what it has not seen. */
  byCode(code: string): MirroredCoupon | null;
  /** One that the upstream has not seen, in any letter case. */
  provisionalByCode(code: string): MirroredCoupon | null;
  list(page: Page, filter?: CouponFilter): MirroredCoupon[];
  count(filter?: CouponFilter): number;
  /** The ids of all that the upstream has shown, in order. */
  shownIds(): number[];
  /** The ids of the upstream's coupons that orders have redeemed. */
  redeemedIds(): number[];
  /** The provisional ids that mean a coupon of the upstream. */
  aliases(): { provisionalId: number; id: number }[];
}
export interface MirrorTable extends MirrorReads {
  put(mirrored: MirroredCoupon): void;
  remove(id: number): void;
  /** A negative id that no coupon has had. */
  provisionalId(): number;
  /** From now on the provisional id means the real one; null: none. */
  alias(provisionalId: number, id: number | null): void;
  /** From now on no provisional id means a coupon of the upstream. */
  removeAliases(): void;
  /** Removes all that the upstream has shown. */
  removeShown(): void;
  /** Makes all that the upstream has shown as old as `confirmedAt`. */
  ageShown(confirmedAt: number): void;
}

export interface SnapshotReads {
  /** Under any spelling that the upstream has answered; the snapshot has its own one. */
  get(licenseKey: string): LicenseSnapshot | null;
  /** How many other spellings of a license key are known. */
  aliasCount(licenseKey: string): number;
  /** License keys of a product, those that the upstream confirmed last before the others. */
  latest(productKey: string, limit: number): string[];
  /** Those whose `refreshAt` has come, longest due first. */
  toRefresh(now: number, limit: number): LicenseSnapshot[];
  /**
   * How many enabled keys were confirmed at or after each of three instants (newest first), before, and how many are
   * disabled. Where thousands were confirmed within the hour of an instant, they are divided as the hour is.
   */
  census(since: { fresh: number; stale: number; grace: number }): RecordCounts;
}
export interface SnapshotTable extends SnapshotReads {
  put(snapshot: LicenseSnapshot): void;
  /** Writes what callers here see of a key that is known. */
  setLocal(licenseKey: string, local: LocalState): void;
  /** Notes that a key was asked for; one that was no longer refreshed is from `refreshAt` on. */
  touch(licenseKey: string, askedAt: number, refreshAt: number): void;
  /**
   * From now on `alias` means the key that the upstream spells `licenseKey`. At most `max` aliases of the key are kept: the
   * oldest are removed. `at`: epoch ms.
   */
  addAlias(alias: string, licenseKey: string, kept: { at: number; max: number }): void;
  /** The aliases of one key become aliases of another. */
  moveAliases(from: string, to: string): void;
  remove(licenseKey: string): void;
  /** Another upstream is to be asked: each key that is refreshed is due, and the 404s of the former one are forgotten. */
  startOver(at: number): void;
  /** Moves the time of every refresh and of every first 404, when `Clock.elapsed` has begun anew. */
  shiftWaits(byMs: number): void;
}

/** The license keys to be fetched ahead of any caller. */
export interface PreloadReads {
  /** Those that are left, in order. */
  left(limit: number): PreloadKey[];
  progress(): PreloadProgress;
}
export interface PreloadTable extends PreloadReads {
  /** Adds a key, also one that was fetched before. */
  add(key: PreloadKey): void;
  /** Notes that a key was fetched, or that the upstream does not know it. */
  finish(licenseKey: string, isFound: boolean): void;
  /** Puts a key that could not be asked for behind the others. */
  postpone(licenseKey: string): void;
  /** Forgets all of them. */
  clear(): void;
}
