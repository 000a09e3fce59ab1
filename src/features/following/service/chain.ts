import type { Tenant } from '../../../domain/access/principal.ts';
import type { Result } from '../../../domain/problem/problem.ts';
import { reachOf } from '../../../domain/latchkey.ts';
import { isUpstreamKnown } from '../../../service/outbox/upstream/identity.ts';
import type { Context } from '../../../service/ports.ts';
import type { Reader, Transaction } from '../../../service/tables.ts';
import type { Writer } from '../../../service/writer.ts';
import { followReached, type FollowKeys } from './followers.ts';
import type { FeedStore } from './ports.ts';

/* An agent in the middle of a chain has a change feed, too, for the agents below it. */

/** What an agent needs to answer the agents below it. */
export type ChainParts = {
  /** The ids of the configured products. */
  productIds: () => readonly string[];
  /** Call it when there may be keys to follow. */
  followNew: () => void;
};

type Parts = ChainParts & { reader: Reader; writer: Writer };

/** The store of an agent in the middle, as the agents below see it. */
export function chainStore(parts: Parts): FeedStore {
  const { reader, writer, productIds, followNew } = parts;
  const visible = ({ productKey }: Tenant): readonly string[] =>
    productIds().filter((id) => productKey === null || id === productKey);
  return {
    isOffered: () => isUpstreamKnown(reader),
    async follow(command, writeOptions) {
      const own = { productIds: visible(command.tenant) };
      const followed = await writer.write('followFromBelow', { ...command, ...own }, writeOptions);
      if (followed.ok) followNew();
      return followed;
    },
    followed: ({ tenant, ...query }) => reader.chain.followed({ ...query, productIds: visible(tenant) }),
    reached(tenant, licenseKeys) {
      const products = visible(tenant);
      return licenseKeys.filter((licenseKey) => {
        const snapshot = reader.snapshots.get(licenseKey);
        if (snapshot === null || !products.includes(snapshot.productId)) return false;
        return !snapshot.gone && snapshot.missingSince === null;
      });
    },
  };
}

/** How long a key is kept as asked for at least, in ms, before it is noted again. */
const askedEveryMs = 3_600_000;

/** Changes which keys an agent below follows. What it follows counts as asked for, so that this agent follows it, too. */
export async function followFromBelow(
  transaction: Transaction,
  { productIds, ...command }: FollowKeys & { productIds: readonly string[] },
  context: Context,
): Promise<Result<readonly string[]>> {
  const { followers, chain, snapshots } = transaction;
  const { agentId, tenant } = command;
  const follow = command.follow.filter((licenseKey) => {
    const snapshot = snapshots.get(licenseKey);
    return snapshot !== null && productIds.includes(snapshot.productId);
  });
  const before = followers.get(agentId, reachOf(tenant))?.seenAt ?? 0;
  const followed = await followReached(transaction, { ...command, follow }, context);
  if (!followed.ok) return followed;
  const { now, monotonic } = context;
  const hasHourBegun = Math.trunc(before / askedEveryMs) !== Math.trunc(now / askedEveryMs);
  const number = followers.get(agentId, reachOf(tenant))?.number ?? 0;
  const at = { askedAt: now, before: now - askedEveryMs, refreshAt: monotonic };
  if (hasHourBegun || follow.length > 0) chain.touch(number, hasHourBegun ? null : follow, at);
  return followed;
}
