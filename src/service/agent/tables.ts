import type { DateShift } from '../../domain/clock.ts';
import type { LicenseSnapshot, LocalState } from '../../domain/agent/license-snapshot.ts';
import type { ActivationAttempt } from '../../domain/agent/activated-key.ts';
import type { PreloadKey, PreloadProgress } from '../../domain/agent/preload.ts';
import type { Coupon, CouponFilter } from '../../domain/checkout/coupon.ts';
import type { Page } from '../../domain/page.ts';
import type { Search } from '../../domain/search.ts';
import type { FreshnessCounts } from '../status.ts';

/** `confirmedAt` (epoch ms) is null while the coupon has a provisional (negative) id. */
export type MirroredCoupon = { coupon: Coupon; confirmedAt: number | null };

/** The upstream's coupons as last read, and coupons that the upstream has not seen yet. */
export interface MirrorReads {
  /** A provisional id still finds the coupon after the upstream has assigned the real id. */
  get(id: number): MirroredCoupon | null;
  /** A coupon that the upstream has shown comes before a provisional coupon. */
  byCode(code: string): MirroredCoupon | null;
  /** A coupon that the upstream has not seen; ignores case. */
  provisionalByCode(code: string): MirroredCoupon | null;
  list(page: Page, filter?: CouponFilter): MirroredCoupon[];
  count(filter?: CouponFilter): number;
  /** The ids of all coupons that the upstream has shown, in order. */
  shownIds(): number[];
  /** The ids of the upstream's coupons that orders have redeemed. */
  redeemedIds(): number[];
  /** The provisional ids that mean a coupon of the upstream. */
  aliases(): { provisionalId: number; id: number }[];
}
export interface MirrorTable extends MirrorReads {
  put(mirrored: MirroredCoupon): void;
  remove(id: number): void;
  /** A negative id that was never used. */
  provisionalId(): number;
  /** Makes a provisional id an alias of a real id; null removes the alias. */
  alias(provisionalId: number, id: number | null): void;
  removeAliases(): void;
  /** Removes all coupons that the upstream has shown. */
  removeShown(): void;
  shiftDates(shift: DateShift): void;
  /** Sets `confirmedAt` of all coupons that the upstream has shown. */
  ageShown(confirmedAt: number): void;
}

export type SnapshotFilter = {
  productId?: string | undefined;
  licenseKey?: string | undefined;
  /** As callers see it. */
  enabled?: boolean | undefined;
  /** Ignores case. */
  buyerEmail?: string | undefined;
  /** In the license key or in the e-mail address. */
  search?: Search | undefined;
};

export interface SnapshotReads {
  /** Also finds a key by its aliases; the snapshot has the upstream's spelling. */
  get(licenseKey: string): LicenseSnapshot | null;
  list(filter: SnapshotFilter, page: Page): LicenseSnapshot[];
  count(filter: SnapshotFilter): number;
  aliasCount(licenseKey: string): number;
  /** Snapshots with this e-mail address of the buyer, in any letter case and order. */
  ofBuyer(buyerEmail: string, limit: number): LicenseSnapshot[];
  /** Activations of a license key (domain/agent/activated-key.ts). */
  activations(licenseKey: string, limit: number): LicenseSnapshot[];
  /** License keys of a product, last confirmed first. */
  latest(productKey: string, limit: number): string[];
  /** License keys of a product that callers ask for and that are not followed; without keys that the upstream did not find. */
  toFollow(productId: string, limit: number): string[];
  /** Followed license keys of a product that neither callers nor agents below ask for any longer. */
  toUnfollow(productId: string, limit: number): string[];
  isFollowed(licenseKey: string): boolean;
  /** When the upstream last confirmed any license (epoch ms); 0: never. */
  lastConfirmedAt(): number;
  followedCount(productId: string): number;
  /** Snapshots whose refresh is due, longest due first. */
  toRefresh(now: number, limit: number): LicenseSnapshot[];
  /**
   * Counts enabled keys by the newest of three instants since which they were confirmed, and disabled keys. If an instant
   * divides an hour with thousands of confirmations, the split of that hour is an estimate.
   */
  counts(since: { fresh: number; stale: number; grace: number }): FreshnessCounts;
  /** The keys that are still answered although the upstream answers 404. `since`: the first 404 (monotonic ms). */
  missing(limit: number): { count: number; since: number | null };
}
export interface SnapshotTable extends SnapshotReads {
  put(snapshot: LicenseSnapshot): void;
  setFollowed(licenseKey: string, isFollowed: boolean): void;
  /** Without `productId`: the keys of all products. */
  unfollowAll(productId?: string): void;
  /** The store was restored: for the agents below, no license was disabled in its new history yet. */
  clearDisabledRevisions(): void;
  /** Stores the state that callers see. */
  setLocal(licenseKey: string, local: LocalState): void;
  /** Delivered operations are pending again, whose effects on the count add up to `uses`. Callers see the same count. */
  undoDelivery(licenseKey: string, undone: { uses: number; operations: number }): void;
  /** Notes that a key was requested. A key that is no longer refreshed is due at `refreshAt`. */
  touch(licenseKey: string, askedAt: number, refreshAt: number): void;
  /** Adds another spelling of a key. Removes the oldest aliases of the key above `max`. `at`: epoch ms. */
  addAlias(alias: string, licenseKey: string, kept: { at: number; max: number }): void;
  moveAliases(from: string, to: string): void;
  remove(licenseKey: string): void;
  /** The upstream has changed: every refreshed key is due, and 404s of the former upstream are forgotten. */
  restartWaits(at: number): void;
  /** Moves the times of refreshes and first 404s after a restart by which `Clock.monotonic` went back. */
  shiftWaits(byMs: number): void;
  /** Moves the dates at which the upstream confirmed licenses, and callers asked for them. */
  shiftDates(shift: DateShift): void;
}

/** What the change feed of the upstream last said about the followed keys of a product. */
export type FollowState = {
  epoch: string;
  cursor: string;
  /** When it confirmed all of them (epoch ms). */
  confirmedAt: number;
};

export interface FollowReads {
  get(productId: string): FollowState | null;
}
export interface FollowTable extends FollowReads {
  put(productId: string, state: FollowState): void;
  shiftDates(shift: DateShift): void;
  removeAll(): void;
}

export interface PreloadReads {
  /** The keys that are not fetched yet, in order. */
  left(limit: number): PreloadKey[];
  progress(): PreloadProgress;
}
export interface PreloadTable extends PreloadReads {
  /** Also queues a key that was fetched before. */
  add(key: PreloadKey): void;
  /** `isFound`: the upstream knows the key. */
  finish(licenseKey: string, isFound: boolean): void;
  /** Moves a key to the end of the queue. */
  postpone(licenseKey: string): void;
  clear(): void;
}

/** One attempt of each license key and name. */
export interface AttemptReads {
  get(licenseKey: string, name: string): ActivationAttempt | null;
}
export interface AttemptTable extends AttemptReads {
  put(attempt: ActivationAttempt): void;
  remove(licenseKey: string, name: string): void;
  /** Removes all but the latest `max`. */
  keepLatest(max: number): void;
  prune(before: number, limit: number): number;
}
