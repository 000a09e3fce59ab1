/**
 * The order in which every use case takes its locks on a database that several processes write to, so that there are no
 * deadlocks: the idempotency key (in the writer), then these kinds. A request that waits for a key holds no locks yet.
 * Other records need no lock: they never change (such as the account of a product), or a unique constraint rejects the
 * second transaction, which is repeated and then finds the row of the first.
 */
export const lockOrder = [
  'start',
  'imports',
  'graces',
  'sharedGraces',
  'credentials',
  'syncAgent',
  'account',
  'product',
  'collection',
  'coupon',
  'couponCode',
  'order',
  'purchase',
  'licenseOfPurchase',
  'licenses',
  'tokens',
  'webhooks',
  'events',
] as const;

export type LockKind = (typeof lockOrder)[number];

/** The records that a use case locks: for each kind, what names them. */
export type Locks = Partial<Record<LockKind, readonly (string | number | null | readonly string[])[]>>;

/** For a use case that locks nothing first: it locks its rows itself, or nobody else changes them. */
export const noLocks = (): Locks => ({});
