/** A product whose purchases come with license keys. */
export type Product = {
  productKey: string;
  accountId: string;
  name: string;
  /** Has a subscription price: coupons for it alone cannot be created through the interface. */
  recurring: boolean;
  createdAt: number;
  /** Epoch ms; from then on it is not sold any more, while its keys go on. Null: it is on sale. */
  archivedAt: number | null;
};
