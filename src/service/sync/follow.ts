import type { Tenant } from '../../domain/access/principal.ts';
import { done, failWith, notFound, type Result } from '../../domain/problem/problem.ts';
import { maxAgentsPerAccount, maxKeysPerAgent, reachOf } from '../../domain/sync/push.ts';
import type { Context } from '../ports.ts';
import type { AuthorityTransaction } from '../tables.ts';
import { tooManyAgents } from './push.ts';
import type { SyncAgent } from './tables.ts';

export type FollowKeys = {
  agentId: string;
  tenant: Tenant;
  /** Ends all earlier follows of the agent. */
  startsAnew: boolean;
  follow: readonly string[];
  unfollow: readonly string[];
};

/** Changes which license keys an agent follows, and notes that it was seen. */
export async function followKeys(
  transaction: AuthorityTransaction,
  { agentId, tenant, startsAnew, follow, unfollow }: FollowKeys,
  { now }: Context,
): Promise<Result<null>> {
  const { sync } = transaction;
  const agent = await agentOf(transaction, { agentId, tenant, now });
  if (agent === null) return tooManyAgents();
  const { number } = agent;
  if (agent.seenAt < now) await sync.put({ ...agent, seenAt: now });
  if (startsAnew && agent.followed > 0) await sync.unfollow(number, null);
  if (unfollow.length > 0) await sync.unfollow(number, unfollow);
  if (follow.length > 0 && (await sync.follow(number, follow)) > maxKeysPerAgent) {
    return failWith('too_many_keys', `An agent follows at most ${maxKeysPerAgent} license keys.`);
  }
  return done(null);
}

/** Null: the account has too many agents. */
async function agentOf(
  { sync }: AuthorityTransaction,
  { agentId, tenant, now }: { agentId: string; tenant: Tenant; now: number },
): Promise<SyncAgent | null> {
  const reach = reachOf(tenant);
  const known = await sync.agent(agentId, reach);
  if (known !== null) return known;
  if ((await sync.count({ tenant })) >= maxAgentsPerAccount) return null;
  const none = { seq: 0, digest: '', reply: '', followed: 0 };
  await sync.add({ agentId, reach, ...tenant, ...none, createdAt: now, seenAt: now });
  return await sync.agent(agentId, reach);
}

/** Forgets an agent: its next push is out of sequence. */
export async function forgetAgent(
  { sync }: AuthorityTransaction,
  { number }: { number: number },
): Promise<Result<SyncAgent>> {
  const agent = await sync.byNumber(number);
  if (agent === null) return notFound('agent');
  await sync.remove(number);
  return done(agent);
}

export const prunedSetting = 'sync_operations_pruned';

/**
 * Removes up to `limit` outcomes of operations from before an instant (epoch ms), and ends up to `limit` follows of agents
 * that were last seen before it. Returns how many rows were removed.
 */
export async function pruneSync(
  { sync, settings }: AuthorityTransaction,
  { before, limit }: { before: number; limit: number },
): Promise<Result<{ removed: number }>> {
  const outcomes = await sync.pruneOutcomes(before, limit);
  const pruned = Number((await settings.get(prunedSetting)) ?? 0);
  if (outcomes > 0 && before > pruned) await settings.set(prunedSetting, String(before));
  const follows = await sync.pruneFollows(before, limit);
  return done({ removed: Math.max(outcomes, follows) });
}
