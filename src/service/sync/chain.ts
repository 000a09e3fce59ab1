import type { FreshnessPolicy } from '../../domain/agent/license-snapshot.ts';
import { done, failWith, type Problem, type Result } from '../../domain/problem/problem.ts';
import {
  isLicenseChange,
  reachOf,
  type MalformedOperation,
  type OperationResult,
  type PushedLicenseChange,
  type PushedOperation,
} from '../../domain/sync/push.ts';
import { couponChangeBefore, takeCouponChange } from './chain-coupon.ts';
import { queueChange } from '../outbox/license-change.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { followReached, type FollowKeys } from './follow.ts';
import { pushOnce, type AppliedPush, type ApplyPush } from './push.ts';

/*
 * An agent in the middle of a chain: it answers the agents below it as an authority does, from its own store. What it takes
 * from below goes up under the same ids. (src/sync/README.md, Chains)
 */

export type TakePush = ApplyPush & {
  /** The configured products that the credential can see. */
  productIds: readonly string[];
  freshness: FreshnessPolicy;
  /** The upstream's API key is configured. */
  hasCoupons: boolean;
  /** `sync.max_pending`. */
  maxPending: number;
};

/** Takes a push of an agent below, once: its changes are applied here, and are in the outbox from then on. */
export async function takePush(
  transaction: Transaction,
  command: TakePush,
  context: Context,
): Promise<Result<AppliedPush>> {
  return await pushOnce(transaction, command, context, {
    apply: async (operation) => {
      const taken = await transaction.attempt(
        async () => await take(transaction, command, operation, context),
      );
      if (taken.ok) return taken;
      // The agent below keeps the changes until there is room.
      const { code } = taken.problem;
      return keptBelow.has(code) ? taken : done({ outcome: 'refused', code });
    },
    again: (operation) => {
      if (isLicenseChange(operation)) announce(transaction, operation);
      const before = couponChangeBefore(transaction, operation);
      return before?.outcome === 'applied' ? before : { outcome: 'applied' };
    },
  });
}

const keptBelow: ReadonlySet<Problem['code']> = new Set<Problem['code']>([
  'storage_full',
  'coupons_not_configured',
]);

/** An agent that did not know that the change was taken may count it again until it is told the license. */
function announce({ snapshots, sync }: Transaction, { licenseKey }: PushedLicenseChange): void {
  sync.announce([snapshots.get(licenseKey)?.license.licenseKey ?? licenseKey]);
}

function take(
  transaction: Transaction,
  command: TakePush,
  operation: PushedOperation | MalformedOperation,
  context: Context,
): Promise<Result<OperationResult>> | Result<OperationResult> {
  if (operation.kind === null) return failWith('parameters_invalid', 'The operation cannot be read.');
  if (!isLicenseChange(operation)) return takeCouponChange(transaction, command, operation, context);
  const { productIds, freshness, maxPending } = command;
  const { id, kind: trigger, licenseKey, seenEnabled } = operation;
  // Its outcome was removed, or it is a change of this agent.
  if (transaction.operations.get(id) !== null) {
    announce(transaction, operation);
    return done({ outcome: 'applied' });
  }
  const snapshot = transaction.snapshots.get(licenseKey);
  const isReached = snapshot !== null && !snapshot.gone && productIds.includes(snapshot.productId);
  if (trigger === 'enable' && seenEnabled && isReached && !snapshot.local.enabled) {
    return done({ outcome: 'conflicted', code: 'revoked' });
  }
  const change = { productIds, licenseKey, trigger, freshness, maxPending, pushed: { id, seenEnabled } };
  const queued = queueChange(transaction, change, context);
  return queued.ok ? done({ outcome: 'applied' }) : queued;
}

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
