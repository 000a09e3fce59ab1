/** A named set of an account's products. */
export type Collection = {
  collectionId: string;
  accountId: string;
  name: string;
  productKeys: readonly string[];
};
