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
};
