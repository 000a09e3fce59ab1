import type { License } from './license.ts';

/** One sale, and the license key that came with it. */
export type Purchase = {
  purchaseId: string;
  licenseKey: string;
  createdAt: number;
  refundedAt: number | null;
};

/** A purchase and the license that came with it. */
export type PurchaseWithLicense = { purchase: Purchase; license: License };
