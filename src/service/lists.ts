import type { MirrorReads } from './agent/tables.ts';
import type { OperationReads } from './outbox/tables.ts';
import type { AuthorityReader, AwaitableTable } from './tables.ts';

type Listed = 'list' | 'count';

/**
 * The lists of an authority and their lengths. They take the longer the more is stored, so a store on this machine reads
 * them in a thread of their own. A reader has them too, and answers in the thread that asks.
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

/** What can be listed of an outbox. */
export type OperationLists = AwaitableTable<Pick<OperationReads, 'list' | 'openOf' | 'countOpenOf'>>;

/** The lists of a store on this machine, which may be an agent's. */
export type LocalLists = Lists & {
  readonly mirror: AwaitableTable<Pick<MirrorReads, Listed>>;
  readonly operations: OperationLists;
};
