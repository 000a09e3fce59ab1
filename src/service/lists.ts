import type { MirrorReads } from './agent/tables.ts';
import type { OperationReads } from './outbox/tables.ts';
import type { AuthorityReader, AwaitableTable } from './tables.ts';

type Listed = 'list' | 'count';

/**
 * The lists of an authority and their lengths. Large lists take long, so a local store reads them in another thread. A
 * reader has the same methods, and runs them in the caller's thread.
 */
export type Lists = {
  readonly accounts: Pick<AuthorityReader['accounts'], Listed>;
  readonly products: Pick<AuthorityReader['products'], Listed>;
  readonly collections: Pick<AuthorityReader['collections'], Listed>;
  readonly purchases: Pick<AuthorityReader['purchases'], Listed>;
  readonly licenses: Pick<AuthorityReader['licenses'], Listed>;
  readonly coupons: Pick<AuthorityReader['coupons'], Listed>;
  readonly redemptions: Pick<AuthorityReader['redemptions'], 'listOf'>;
  readonly tokens: Pick<AuthorityReader['tokens'], Listed>;
  readonly audit: Pick<AuthorityReader['audit'], Listed>;
};

export type OperationLists = AwaitableTable<Pick<OperationReads, 'list' | 'openOf' | 'countOpenOf'>>;

/** The lists of a local store, which may be an agent's. */
export type LocalLists = Lists & {
  readonly mirror: AwaitableTable<Pick<MirrorReads, Listed>>;
  readonly operations: OperationLists;
};
