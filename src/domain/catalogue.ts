import type { License } from './license.ts';
import { dayMs, minuteMs } from './time.ts';

/** A seller's account. Times are epoch ms. */
export type Account = { accountId: string; name: string; createdAt: number };

/** A product whose purchases come with license keys. */
export type Product = {
  productKey: string;
  accountId: string;
  name: string;
  /** The product has a subscription price. The API creates no coupons for such a product alone. */
  recurring: boolean;
  createdAt: number;
  /** Epoch ms. The product is no longer sold from then on, but its keys stay valid. Null: it is on sale. */
  archivedAt: number | null;
  leaseTerms: LeaseTerms;
  licenseTerms: ProductTerms;
};

/** What a product says about its licenses. */
export type ProductTerms = {
  /** How long a new license is valid, such as `1y`; null: for ever. */
  licenseFor: string | null;
  /** What a new license unlocks. */
  entitlements: readonly string[];
  /** How long each license is answered as valid after its end. */
  expiryGraceMs: number;
};

export const defaultProductTerms: Readonly<ProductTerms> = {
  licenseFor: null,
  entitlements: [],
  expiryGraceMs: 0,
};

export const maxExpiryGraceMs: number = 400 * dayMs;

/** The lease settings of a product. */
export type LeaseTerms = {
  /** How many devices may use one license at the same time; null: any number. */
  seats: number | null;
  /** How long a seat stays taken after the last lease of its device has expired. */
  holdMs: number;
  /** How long a lease is valid. */
  termMs: number;
  /** After which time a holder renews a lease. */
  refreshMs: number;
  /** Whether leases contain the e-mail address of the buyer. */
  showsEmail: boolean;
};

export const defaultLeaseTerms: Readonly<LeaseTerms> = {
  seats: null,
  holdMs: 90 * dayMs,
  termMs: 30 * dayMs,
  refreshMs: dayMs,
  showsEmail: false,
};

/** The limits of these settings. `refreshMs` is also less than `termMs`. */
export const leaseTermLimits = {
  maxSeats: 1_000_000,
  maxHoldMs: 1_000 * dayMs,
  minTermMs: minuteMs,
  maxTermMs: 400 * dayMs,
  minRefreshMs: 10_000,
} as const;

/** A named set of an account's products. */
export type Collection = {
  collectionId: string;
  accountId: string;
  name: string;
  productKeys: readonly string[];
};

/** One sale, and the license key that came with it. */
export type Purchase = {
  purchaseId: string;
  licenseKey: string;
  createdAt: number;
  refundedAt: number | null;
};

/** A purchase and the license that came with it. */
export type PurchaseWithLicense = { purchase: Purchase; license: License };
