import type { LeaseTerms } from '../features/leases/domain/lease.ts';
import type { License } from './license.ts';

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
};

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
