/** A seller's account. Times are epoch ms. */
export type Account = { accountId: string; name: string; createdAt: number };
