/** A token as it is kept: only its digest. Times are epoch ms. */
export type Token = {
  tokenId: string;
  scopes: readonly string[];
  /** On an agent: the id of the product. */
  productKey: string | null;
  accountId: string | null;
  label: string | null;
  createdAt: number;
  /** To the hour, and written some time after the use; null: never. */
  lastUsedAt: number | null;
  /** From then on it is refused; null: never. */
  expiresAt: number | null;
};
