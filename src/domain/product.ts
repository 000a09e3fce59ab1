/** A product whose purchases come with license keys. */
export type Product = {
  productKey: string;
  accountId: string;
  name: string;
  /** Has a subscription price: coupons for it alone cannot be created through the interface. */
  recurring: boolean;
  createdAt: number;
};
