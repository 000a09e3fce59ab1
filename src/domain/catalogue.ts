/** A seller's account. Times are epoch ms. */
export type Account = { accountId: string; name: string; createdAt: number };

/** A product whose purchases come with license keys. */
export type Product = {
  productKey: string;
  accountId: string;
  name: string;
  /** Has a subscription price: coupons for it alone cannot be created through the interface. */
  recurring: boolean;
  createdAt: number;
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

/** A token as it is kept: only its digest. */
export type Token = {
  tokenId: string;
  scopes: readonly string[];
  productKey: string | null;
  accountId: string | null;
  label: string | null;
  createdAt: number;
};
