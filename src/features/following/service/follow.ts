import type { Tenant } from '../../../domain/access/principal.ts';
import { done, failWith, notFound, type Result } from '../../../domain/problem/problem.ts';
import { reachOf } from '../../../domain/latchkey.ts';
import { maxKeysPerAgent, seenEveryMs } from '../domain/follow.ts';
import type { Context } from '../../../service/ports.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';
import { forgetIdle, hasRoom, tooManyAgents } from './room.ts';
import type { SyncAgent } from './tables.ts';

export type FollowKeys = {
  agentId: string;
  tenant: Tenant;
  /** Ends all earlier follows of the agent. */
  startsAnew: boolean;
  follow: readonly string[];
  unfollow: readonly string[];
};

/**
 * Changes which license keys an agent follows, and notes that it was seen. Returns the keys that it follows from now on:
 * nothing is stored about a key out of its reach.
 */
export async function followKeys(
  transaction: AuthorityTransaction,
  command: FollowKeys,
  context: Context,
): Promise<Result<readonly string[]>> {
  const { tenant, follow } = command;
  const reached = follow.length === 0 ? follow : await transaction.sync.reached(tenant, follow);
  return await followReached(transaction, { ...command, follow: reached }, context);
}

/** `follow`: keys within the reach. */
export async function followReached(
  transaction: AuthorityTransaction,
  { agentId, tenant, startsAnew, follow, unfollow }: FollowKeys,
  { now }: Context,
): Promise<Result<readonly string[]>> {
  const { sync } = transaction;
  const agent = await agentOf(transaction, { agentId, tenant, now });
  if (agent === null) return tooManyAgents();
  const { number } = agent;
  if (now - agent.seenAt > seenEveryMs) await sync.setSeen(number, now);
  if (startsAnew && agent.followed > 0) await sync.unfollow(number, null);
  if (unfollow.length > 0) await sync.unfollow(number, unfollow);
  if (follow.length > 0 && (await sync.follow(number, follow)) > maxKeysPerAgent) {
    return failWith('too_many_keys', `An agent follows at most ${maxKeysPerAgent} license keys.`);
  }
  return done(follow);
}

/** Null: there are too many agents. */
async function agentOf(
  transaction: AuthorityTransaction,
  { agentId, tenant, now }: { agentId: string; tenant: Tenant; now: number },
): Promise<SyncAgent | null> {
  const { sync } = transaction;
  const reach = reachOf(tenant);
  const known = await sync.agent(agentId, reach);
  if (known !== null) return known;
  if (!(await hasRoom(transaction, reach, now))) return null;
  await sync.add({ agentId, reach, ...tenant, followed: 0, createdAt: now, seenAt: now });
  return await sync.agent(agentId, reach);
}

/** Forgets an agent: it begins to follow its license keys again. */
export async function forgetAgent(
  { sync }: AuthorityTransaction,
  { number }: { number: number },
): Promise<Result<SyncAgent>> {
  const agent = await sync.byNumber(number);
  if (agent === null) return notFound('agent');
  await sync.remove(number);
  return done(agent);
}

/**
 * Ends up to `limit` follows of agents that were last seen before an instant (epoch ms), and forgets up to `limit` of these
 * agents. Returns how many rows were removed.
 */
export async function pruneSync(
  { sync }: AuthorityTransaction,
  { before, limit }: { before: number; limit: number },
): Promise<Result<{ removed: number }>> {
  const follows = await sync.pruneFollows(before, limit);
  const idle = await forgetIdle({ sync }, { reach: null, before, limit });
  return done({ removed: Math.max(follows, idle) });
}
