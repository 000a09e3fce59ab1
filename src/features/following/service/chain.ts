import type { Result } from '../../../domain/problem/problem.ts';
import { reachOf } from '../../../domain/latchkey.ts';
import type { Context } from '../../../service/ports.ts';
import type { Transaction } from '../../../service/tables.ts';
import { followReached, type FollowKeys } from './follow.ts';

/** How long a key is kept as asked for at least, in ms, before it is noted again. */
const askedEveryMs = 3_600_000;

/** Changes which keys an agent below follows. What it follows counts as asked for, so that this agent follows it, too. */
export async function followFromBelow(
  transaction: Transaction,
  { productIds, ...command }: FollowKeys & { productIds: readonly string[] },
  context: Context,
): Promise<Result<readonly string[]>> {
  const { sync, chain, snapshots } = transaction;
  const { agentId, tenant } = command;
  const follow = command.follow.filter((licenseKey) => {
    const snapshot = snapshots.get(licenseKey);
    return snapshot !== null && productIds.includes(snapshot.productId);
  });
  const before = sync.agent(agentId, reachOf(tenant))?.seenAt ?? 0;
  const followed = await followReached(transaction, { ...command, follow }, context);
  if (!followed.ok) return followed;
  const { now, monotonic } = context;
  const hasHourBegun = Math.trunc(before / askedEveryMs) !== Math.trunc(now / askedEveryMs);
  const number = sync.agent(agentId, reachOf(tenant))?.number ?? 0;
  const at = { askedAt: now, before: now - askedEveryMs, refreshAt: monotonic };
  if (hasHourBegun || follow.length > 0) chain.touch(number, hasHourBegun ? null : follow, at);
  return followed;
}
