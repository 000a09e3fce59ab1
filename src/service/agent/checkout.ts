import type { FreshnessPolicy } from '../../domain/agent/license-snapshot.ts';
import { done, failWith, type Result } from '../../domain/problem/problem.ts';
import { hasStoredResponse } from '../access/records.ts';
import { quoteMirroredCoupon, storedCouponCode, type RedeemCoupon } from '../checkout.ts';
import { protocolOf } from '../outbox/protocol.ts';
import { isUndecided, type AnsweredRedemption, type QueuedRedemption } from '../outbox/redemption.ts';
import type { WriteOptions } from '../ports.ts';
import {
  provenanceNow,
  type CheckoutService,
  type Provenance,
  type QuoteResponse,
  type RedemptionResponse,
} from '../services.ts';
import {
  couponsNotConfigured,
  couponsUnreachable,
  unreadableCoupon,
  isExpired,
  refreshOlder,
  type AgentCouponParts,
} from './coupon.ts';
import { mirroredSince } from './mirror.ts';

/** `settings` and `isConfigured` return the current configuration. */
export type AgentCheckoutParts = Pick<
  AgentCouponParts,
  'reader' | 'writer' | 'clock' | 'fetcher' | 'deliveries' | 'isConfigured'
> & {
  /**
   * `unknownMs`: how long an agent waits until it asks the upstream again for unknown codes. `timeoutMs`:
   * `upstream.timeout`, how long a redemption waits for the upstream.
   */
  settings: () => {
    freshness: FreshnessPolicy;
    unknownMs: number;
    maxPending: number;
    timeoutMs: number;
  };
};

/**
 * An agent quotes coupons from its mirror of the upstream's list, and stores redemptions itself. An upstream that speaks
 * `/sync/v1` decides about them while it can be reached.
 */
export function agentCheckoutService(parts: AgentCheckoutParts): CheckoutService {
  const { reader, writer, clock } = parts;
  const stored = (code: string): Promise<string> =>
    storedCouponCode(code, (each) => reader.mirror.byCode(each));
  return {
    async quote(accountId, sent, signal): Promise<Result<QuoteResponse>> {
      const provenance = await refreshCode(parts, await stored(sent.code), signal);
      if (!provenance.ok) return provenance;
      const cart = { ...sent, code: await stored(sent.code) };
      const quote = quoteMirroredCoupon(reader, { accountId, cart, now: clock.now() });
      return done({ quote, provenance: provenance.value });
    },
    async redeem(command, writeOptions, signal): Promise<Result<RedemptionResponse>> {
      const provenance = await refreshCode(parts, await stored(command.cart.code), signal);
      if (!provenance.ok) return provenance;
      const cart = { ...command.cart, code: await stored(command.cart.code) };
      if (protocolOf(reader) === 'latchkey') {
        const answered = await redeemByPush(parts, { ...command, cart }, writeOptions, signal);
        return answered.ok ? done(withProvenance(answered.value, provenance.value)) : answered;
      }
      const redeemed = await writer.write('redeemMirroredCoupon', { ...command, cart }, writeOptions);
      return redeemed.ok ? done({ ...redeemed.value, provenance: provenance.value }) : redeemed;
    },
    void: (command, writeOptions, signal) => voidByPush(parts, command, writeOptions, signal),
  };
}

function withProvenance(
  { redemption, isNew, isPending }: AnsweredRedemption,
  provenance: Provenance,
): RedemptionResponse {
  const isUnconfirmed = isPending && provenance.freshness !== 'authoritative';
  return { redemption, isNew, provenance: isUnconfirmed ? { ...provenance, pending: 1 } : provenance };
}

/** Redeems the coupon of the mirror, and waits for the answer of the upstream. */
async function redeemByPush(
  parts: AgentCheckoutParts,
  command: RedeemCoupon,
  { idempotency, ...caller }: WriteOptions,
  signal: AbortSignal,
): Promise<Result<AnsweredRedemption>> {
  const { reader, writer, fetcher, deliveries, settings } = parts;
  const { maxPending, timeoutMs } = settings();
  // The response is stored under the idempotency key once it is known.
  if (hasStoredResponse(reader, idempotency)) return await answer(parts, null, { idempotency, ...caller });
  const isReachable = fetcher.isReachable();
  const queued = await writer.write('queueRedemption', { ...command, isReachable, maxPending }, caller);
  if (!queued.ok) return queued;
  const { operationId } = queued.value;
  if (operationId !== null) {
    deliveries.wake();
    await deliveries.waitFor(operationId, { waitMs: timeoutMs, untilFailure: true }, signal);
    const operation = reader.operations.get(operationId);
    if (operation !== null && isUndecided(operation)) return await refuseUsedUp(parts, command, caller);
  }
  return await answer(parts, queued.value, { idempotency, ...caller });
}

/** `queued`: null: the stored response is repeated. */
async function answer(
  { writer }: AgentCheckoutParts,
  queued: QueuedRedemption | null,
  writeOptions: WriteOptions,
): Promise<Result<AnsweredRedemption>> {
  return await writer.write('answerRedemption', { queued }, writeOptions);
}

/** The mirror shows that the coupon is used up, and the upstream has not said otherwise. */
async function refuseUsedUp(
  { writer, deliveries }: AgentCheckoutParts,
  { accountId, order }: RedeemCoupon,
  caller: Omit<WriteOptions, 'idempotency'>,
): Promise<Result<never>> {
  await writer.write('queueVoid', { accountId, order, maxPending: Infinity }, caller);
  deliveries.wake();
  const reasons = ['usage_limit_reached'] as const;
  return failWith('coupon_not_redeemable', `The coupon cannot be redeemed for this cart: ${reasons[0]}.`, {
    reasons,
  });
}

async function voidByPush(
  { writer, deliveries, settings }: AgentCheckoutParts,
  command: { accountId: string; order: string },
  writeOptions: WriteOptions,
  signal: AbortSignal,
): Promise<Result<unknown>> {
  const { maxPending, timeoutMs } = settings();
  const voided = await writer.write('queueVoid', { ...command, maxPending }, writeOptions);
  if (!voided.ok || voided.value.operationId === null) return voided;
  deliveries.wake();
  const wait = { waitMs: timeoutMs, untilFailure: true };
  await deliveries.waitFor(voided.value.operationId, wait, signal);
  return voided;
}

/**
 * Reads the upstream's list if the mirror does not have the code, or if the coupon is older than its grace. Unknown
 * codes cause at most one read in `unknownMs`, whatever their number.
 */
async function refreshCode(
  parts: AgentCheckoutParts,
  code: string,
  signal: AbortSignal,
): Promise<Result<Provenance>> {
  const { reader, clock, fetcher, isConfigured, settings } = parts;
  if (!isConfigured()) return couponsNotConfigured();
  const mirrored = reader.mirror.byCode(code);
  if (mirrored !== null && !isExpired(parts, mirrored.confirmedAt)) {
    const { confirmedAt } = mirrored;
    refreshOlder(parts, confirmedAt);
    return done(provenanceNow(parts, { confirmedAt, pending: confirmedAt === null ? 1 : 0, cache: 'hit' }));
  }
  const before = mirroredSince(reader);
  if (before !== null && clock.now() - before <= settings().unknownMs) {
    const unreadable = unreadableCoupon(fetcher, code);
    if (mirrored === null && unreadable !== null) return unreadable;
    const { confirmedAt } = mirrored ?? { confirmedAt: before };
    return done(provenanceNow(parts, { confirmedAt, pending: 0, cache: 'hit' }));
  }
  const lookup = await fetcher.list(signal);
  const since = mirroredSince(reader);
  if (since === null) return couponsUnreachable(lookup);
  const unreadable = unreadableCoupon(fetcher, code);
  if (unreadable !== null && reader.mirror.byCode(code) === null) return unreadable;
  const { confirmedAt } = reader.mirror.byCode(code) ?? { confirmedAt: since };
  return done(provenanceNow(parts, { confirmedAt, pending: 0, cache: since === before ? 'hit' : 'miss' }));
}
