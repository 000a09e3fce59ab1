import type { Tenant } from '../../../domain/access/principal.ts';
import { dayMs } from '../../../domain/time.ts';
import type { Rate } from '../../../domain/token-bucket.ts';

const hourMs = 3_600_000;

/*
 * What agents follow at a Latchkey (src/sync/README.md, Between Latchkeys). A reach is what a credential can change: an
 * account, or a product of an account.
 */

/** The version of the protocol. */
export const syncProtocol = 1;

/** The most license keys that one request follows, and its longest body. */
export const maxFollowed = 1_000;
export const maxFollowBytes: number = 256 * 1024;

/** The most missing license keys that one request watches. */
export const maxWatched = 50;

/** How many changes of all licenses one read of a follower looks through. A longer read would delay others. */
export const changesPerRead = 500;

/** The longest wait for a change, in seconds. */
export const maxWaitS = 25;

/** The limits of the store. */
export const maxKeysPerAgent = 100_000;
export const maxAgentsPerReach = 100_000;

/**
 * How often a credential may begin another follower. In the time in which a follower counts as idle, one credential cannot
 * begin as many as a reach may have.
 */
export const newFollowerRate: Rate = { perSecond: 10, burst: 1_000 };
export const idleAfterMs: number = 2 * hourMs;

/** For how long the answers to agents and the changes of followed keys are kept. A follower may be silent for as long. */
export const syncRetentionMs: number = 30 * dayMs;

/** An agent is noted as seen at most once in this time, in ms, so that most requests write nothing. */
export const seenEveryMs: number = hourMs;

/** Names the reach of a credential. Two reaches never have the same name. */
export function reachOf({ accountId, productKey }: Tenant): string {
  const names = productKey === null ? [accountId] : [accountId, productKey];
  return names.map(encodeURIComponent).join('/');
}

/** The part of an epoch that names the store: a restored store keeps it. */
export function storeOf(epoch: string): string {
  return epoch.slice(0, 16);
}
