import type { Tenant } from '../../domain/access/principal.ts';
import type { FreshnessPolicy } from '../../domain/agent/license-snapshot.ts';
import type { PushedRedemption } from '../../domain/sync/push.ts';
import { storedCouponCode } from '../checkout.ts';
import { isUndecided } from '../outbox/redemption.ts';
import type { CouponFetch, Deliveries, WriteOptions } from '../ports.ts';
import type { ApplyPush } from './push.ts';
import { protocolOf } from '../outbox/protocol.ts';
import type { Reader } from '../tables.ts';
import type { Writer } from '../writer.ts';
import type { SyncStore } from './ports.ts';

/** What an agent needs to answer the agents below it. */
export type ChainParts = {
  /** The ids of the configured products. */
  productIds: () => readonly string[];
  /** `timeoutMs`: `upstream.timeout`. */
  settings: () => { freshness: FreshnessPolicy; maxPending: number; timeoutMs: number };
  hasCoupons: () => boolean;
  coupons: Pick<CouponFetch, 'isReachable'>;
  deliveries: Deliveries;
  /** Call it when the outbox has new operations. */
  wake: () => void;
  /** Call it when there may be keys to follow. */
  followNew: () => void;
};

type Parts = ChainParts & { reader: Reader; writer: Writer };

/** The store of an agent in the middle, as the agents below see it. */
export function chainStore(parts: Parts): SyncStore {
  const { reader, writer, productIds, settings, hasCoupons, wake, followNew } = parts;
  const visible = ({ productKey }: Tenant): readonly string[] =>
    productIds().filter((id) => productKey === null || id === productKey);
  return {
    // An agent that has begun is served in any case: what it cannot push would wait.
    isOffered: () => protocolOf(reader) === 'latchkey',
    async push(command, writeOptions) {
      const { freshness, maxPending } = settings();
      if (hasCoupons()) await askAbove(parts, command, writeOptions);
      const visibleIds = visible(command.tenant);
      const own = { productIds: visibleIds, freshness, hasCoupons: hasCoupons(), maxPending };
      const full = { ...command, ...own };
      const taken = await writer.write('takePush', full, writeOptions);
      if (taken.ok && taken.unchanged !== true) wake();
      return taken;
    },
    async follow(command, writeOptions) {
      const own = { productIds: visible(command.tenant) };
      const followed = await writer.write('followFromBelow', { ...command, ...own }, writeOptions);
      if (followed.ok) followNew();
      return followed;
    },
    followed: ({ tenant, ...query }) => reader.chain.followed({ ...query, productIds: visible(tenant) }),
    isTaken: (id) => reader.operations.get(id) !== null,
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

/** The part of `upstream.timeout` that the agent below waits for: it would give up just before the answer. */
const timeoutPart = 0.5;

/**
 * Redemptions whose callers wait at the agent below are sent up first, and their push is answered with what the upstream
 * says, so that the limit of a coupon holds over the whole chain.
 */
async function askAbove(
  { reader, writer, coupons, deliveries, settings }: Parts,
  { tenant: { accountId }, operations }: ApplyPush,
  writeOptions: Partial<WriteOptions>,
): Promise<void> {
  const caller = { ...writeOptions, idempotency: null };
  const { maxPending, timeoutMs } = settings();
  const asked = operations.filter(
    (each): each is PushedRedemption =>
      each.kind === 'redeem' && !each.provisional && reader.operations.get(each.id) === null,
  );
  if (asked.length === 0 || !coupons.isReachable()) return;
  const waits = [];
  for (const { id, order, cart: sent } of asked) {
    const code = await storedCouponCode(sent.code, (each) => reader.mirror.byCode(each));
    const pushed = { id, takenAt: null };
    const command = { accountId, order, cart: { ...sent, code }, isReachable: true, maxPending, pushed };
    const queued = await writer.write('queueRedemption', command, caller);
    if (!queued.ok || queued.value.operationId !== id) continue;
    deliveries.wake();
    const wait = { waitMs: timeoutMs * timeoutPart, untilFailure: true };
    waits.push(deliveries.waitFor(id, wait, new AbortController().signal).then(() => ({ id, order })));
  }
  for (const { id, order } of await Promise.all(waits)) {
    const operation = reader.operations.get(id);
    if (operation !== null && isUndecided(operation))
      await writer.write('queueVoid', { accountId, order, maxPending: Infinity }, caller);
  }
}
