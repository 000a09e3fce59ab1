/** One sale, and the license key that came with it. */
export type Purchase = {
  purchaseId: string;
  licenseKey: string;
  createdAt: number;
  refundedAt: number | null;
};
