/** A token as it is kept: only its digest. */
export type Token = {
  tokenId: string;
  scopes: readonly string[];
  productKey: string | null;
  accountId: string | null;
  label: string | null;
  createdAt: number;
};
