import { done, type Result } from '../../domain/problem/problem.ts';
import { hasStoredResponse } from '../idempotency.ts';
import { notRedeemable, quoteMirroredCoupon, type RedeemCoupon } from '../checkout.ts';
import { storedCouponCode } from '../pasted-keys.ts';
import type { Operation } from '../../domain/outbox/operation.ts';
import {
  isUndecided,
  sendsRedemptions,
  type AnsweredRedemption,
  type QueuedRedemption,
} from '../outbox/coupon/redemption.ts';
import { isUpstreamKnown } from '../outbox/upstream/identity.ts';
import type { Keyed, WriteOptions } from '../ports.ts';
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
  refuseForgotten,
  answerWaitMs,
  type AgentCouponParts,
} from './coupon.ts';
import { mirroredSince } from './mirror.ts';

/** `settings` and `isConfigured` return the current configuration. */
export type AgentCheckoutParts = Pick<
  AgentCouponParts,
  'reader' | 'writer' | 'clock' | 'fetcher' | 'deliveries' | 'isConfigured' | 'settings'
>;

/**
 * An agent quotes coupons from its mirror of the upstream's list, and stores redemptions itself. An upstream that is a
 * Latchkey decides about them while it can be reached.
 */
export function agentCheckoutService(parts: AgentCheckoutParts): CheckoutService {
  const { reader, clock } = parts;
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
      const redeemed = await redeem(parts, { ...command, cart }, writeOptions, signal);
      return redeemed.ok ? done(withProvenance(redeemed.value, provenance.value)) : redeemed;
    },
    void: (command, writeOptions, signal) => voidOrder(parts, command, writeOptions, signal),
  };
}

function withProvenance(
  { redemption, isNew, isPending }: AnsweredRedemption,
  provenance: Provenance,
): RedemptionResponse {
  const isUnconfirmed = isPending && provenance.freshness !== 'authoritative';
  return { redemption, isNew, provenance: isUnconfirmed ? { ...provenance, pending: 1 } : provenance };
}

async function redeem(
  parts: AgentCheckoutParts,
  command: RedeemCoupon,
  writeOptions: WriteOptions,
  signal: AbortSignal,
): Promise<Result<AnsweredRedemption>> {
  const { reader, writer, fetcher } = parts;
  // The list shows whether the upstream counts redemptions.
  if (!isUpstreamKnown(reader) && fetcher.isReachable()) await fetcher.list(signal);
  if (sendsRedemptions(reader)) return await redeemAbove(parts, command, writeOptions, signal);
  const redeemed = await writer.write('redeemMirroredCoupon', command, writeOptions);
  return redeemed.ok ? { ...redeemed, value: { ...redeemed.value, isPending: false } } : redeemed;
}

/** Redeems the coupon of the mirror, and waits for the upstream's answer. */
async function redeemAbove(
  parts: AgentCheckoutParts,
  command: RedeemCoupon,
  { idempotency, ...caller }: WriteOptions,
  signal: AbortSignal,
): Promise<Result<AnsweredRedemption>> {
  const keyed = idempotency?.keyed ?? null;
  const { reader, writer, fetcher, deliveries, settings } = parts;
  const { accountId, order } = command;
  const answer = (queued: QueuedRedemption | null): Promise<Result<AnsweredRedemption>> =>
    writer.write('answerRedemption', { order, queued }, { ...caller, idempotency });
  // The response is stored under the idempotency key once it is known.
  if (hasStoredResponse(reader, idempotency)) return await answer(null);
  const forgotten = await refuseForgotten(reader, keyed);
  if (forgotten !== null) return forgotten;
  const { maxPending } = settings();
  const asked = { ...command, isReachable: fetcher.isReachable(), maxPending, below: keyed };
  const queued = await writer.write('queueRedemption', asked, caller);
  if (!queued.ok) return queued;
  const { operationId } = queued.value;
  if (operationId === null) {
    deliveries.wake();
    return await answer(queued.value);
  }
  const operation = await awaitAnswer(parts, operationId, keyed, signal);
  if (operation === null || !isUndecided(operation)) return await answer(queued.value);
  // The mirror shows that the coupon is used up, and the upstream has not said otherwise.
  await writer.write('queueVoid', { accountId, order, maxPending: Infinity }, caller);
  deliveries.wake();
  return notRedeemable(['usage_limit_reached']);
}

/** Waits until the upstream has answered, or cannot. An agent below waits for this agent in its turn. */
async function awaitAnswer(
  { reader, deliveries, settings }: AgentCheckoutParts,
  operationId: string,
  keyed: Keyed | null,
  signal: AbortSignal,
): Promise<Operation | null> {
  deliveries.wake();
  const waitMs = answerWaitMs(settings(), keyed);
  await deliveries.waitFor(operationId, { waitMs, untilFailure: true }, signal);
  return reader.operations.get(operationId);
}

async function voidOrder(
  parts: AgentCheckoutParts,
  command: { accountId: string; order: string },
  writeOptions: WriteOptions,
  signal: AbortSignal,
): Promise<Result<unknown>> {
  const keyed = writeOptions.idempotency?.keyed ?? null;
  const { maxPending } = parts.settings();
  const asked = { ...command, maxPending, below: keyed };
  const voided = await parts.writer.write('queueVoid', asked, writeOptions);
  if (!voided.ok || voided.value.operationId === null) return voided;
  await awaitAnswer(parts, voided.value.operationId, keyed, signal);
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
