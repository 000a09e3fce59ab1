import type { Tenant } from '../../../domain/access/principal.ts';
import { done, failWith, notFound, type Result } from '../../../domain/problem/problem.ts';
import { reachOf } from '../../../domain/latchkey.ts';
import { idleAfterMs, maxAgentsPerReach, maxKeysPerAgent, seenEveryMs } from '../domain/change-feed.ts';
import type { Context } from '../../../service/ports.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';
import type { Follower } from './tables.ts';

/** How many idle followers make room at once: to find them takes a look at all followers. */
const forgottenAtOnce = 1_000;

export type FollowKeys = {
  agentId: string;
  tenant: Tenant;
  /** Ends all its earlier follows. */
  startsAnew: boolean;
  follow: readonly string[];
  unfollow: readonly string[];
};

/**
 * Changes the license keys of a follower, and notes that it was seen. Returns the keys that it follows from now on:
 * nothing is stored about a key out of its reach.
 */
export async function followKeys(
  transaction: AuthorityTransaction,
  command: FollowKeys,
  context: Context,
): Promise<Result<readonly string[]>> {
  const { tenant, follow } = command;
  const reached = follow.length === 0 ? follow : await transaction.followers.reached(tenant, follow);
  return await followReached(transaction, { ...command, follow: reached }, context);
}

/** `follow`: keys within the reach. */
export async function followReached(
  transaction: AuthorityTransaction,
  { agentId, tenant, startsAnew, follow, unfollow }: FollowKeys,
  { now }: Context,
): Promise<Result<readonly string[]>> {
  const { followers } = transaction;
  const follower = await followerOf(transaction, { agentId, tenant, now });
  if (follower === null) return tooManyAgents();
  const { number } = follower;
  if (now - follower.seenAt > seenEveryMs) await followers.setSeen(number, now);
  if (startsAnew && follower.followed > 0) await followers.unfollow(number, null);
  if (unfollow.length > 0) await followers.unfollow(number, unfollow);
  if (follow.length > 0 && (await followers.follow(number, follow)) > maxKeysPerAgent) {
    return failWith('too_many_keys', `An agent follows at most ${maxKeysPerAgent} license keys.`);
  }
  return done(follow);
}

/** Null: there are too many followers. */
async function followerOf(
  transaction: AuthorityTransaction,
  { agentId, tenant, now }: { agentId: string; tenant: Tenant; now: number },
): Promise<Follower | null> {
  const { followers } = transaction;
  const reach = reachOf(tenant);
  const known = await followers.get(agentId, reach);
  if (known !== null) return known;
  if (!(await hasRoom(transaction, reach, now))) return null;
  await followers.add({ agentId, reach, ...tenant, followed: 0, createdAt: now, seenAt: now });
  return await followers.get(agentId, reach);
}

/**
 * Whether a reach has room for another follower. A full reach forgets followers that were silent: they lose nothing, because
 * they send all their keys again.
 */
export async function hasRoom(
  { followers }: Pick<AuthorityTransaction, 'followers'>,
  reach: string,
  now: number,
  maximum: number = maxAgentsPerReach,
): Promise<boolean> {
  if ((await followers.countOfReach(reach)) < maximum) return true;
  return (await forgetIdle({ followers }, { reach, before: now - idleAfterMs, limit: forgottenAtOnce })) > 0;
}

/** Forgets up to `limit` followers that were last seen before an instant. Returns how many. */
async function forgetIdle(
  { followers }: Pick<AuthorityTransaction, 'followers'>,
  { reach, before, limit }: { reach: string | null; before: number; limit: number },
): Promise<number> {
  const numbers = await followers.idle(reach, before, limit);
  for (const number of numbers) await followers.remove(number);
  return numbers.length;
}

function tooManyAgents(): Result<never> {
  const detail = `The product or account of this credential has ${maxAgentsPerReach} agents already.`;
  return failWith('too_many_agents', detail);
}

/** Forgets an agent: it begins to follow its license keys again. */
export async function forgetAgent(
  { followers }: AuthorityTransaction,
  { number }: { number: number },
): Promise<Result<Follower>> {
  const agent = await followers.byNumber(number);
  if (agent === null) return notFound('agent');
  await followers.remove(number);
  return done(agent);
}

/**
 * Ends up to `limit` follows of followers that were last seen before an instant (epoch ms), and forgets up to `limit` of
 * these followers. Returns how many rows were removed.
 */
export async function pruneFollowers(
  { followers }: AuthorityTransaction,
  { before, limit }: { before: number; limit: number },
): Promise<Result<{ removed: number }>> {
  const follows = await followers.pruneFollows(before, limit);
  const idle = await forgetIdle({ followers }, { reach: null, before, limit });
  return done({ removed: Math.max(follows, idle) });
}
