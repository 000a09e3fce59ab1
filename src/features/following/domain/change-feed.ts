import type { Rate } from '../../../domain/token-bucket.ts';

const hourMs = 3_600_000;

/* The limits of the change feed (src/sync/BETWEEN-LATCHKEYS.md, The change feed). */

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

/** A follower is noted as seen at most once in this time, in ms, so that most requests write nothing. */
export const seenEveryMs: number = hourMs;
