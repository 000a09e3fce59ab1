import { defaultAccountId } from '../../domain/access/principal.ts';
import type { Cart } from '../../domain/checkout/quote.ts';
import {
  endAwait,
  isAwaited,
  refusalOf,
  refuseAsUpstream,
  withRefusal,
} from '../../domain/outbox/awaited.ts';
import { maxCartBytes, redeemPayload, redeemPayloadFor } from '../../domain/outbox/coupon-payload.ts';
import type { PushedResult } from '../../domain/sync/push.ts';
import { isHeld, isUnfinished, type Operation } from '../../domain/outbox/operation.ts';
import { done, failWith, type Result } from '../../domain/problem/problem.ts';
import { redeemMirroredCoupon, voidRedemption, type RedeemedCoupon } from '../checkout.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { protocolOf } from './protocol.ts';
import { enqueue, move, refuseWhenFull } from './queue.ts';
import { refuseOperation } from './record-response.ts';

/*
 * Redemptions of an agent whose upstream speaks `/sync/v1`. The upstream decides, so that the usage limit of a coupon holds
 * over all agents. While the upstream cannot be reached, the mirror decides, and the redemption is provisional.
 * (src/sync/README.md, Coupons)
 */

type QueueRedemption = {
  accountId: string;
  order: string;
  cart: Cart;
  /** The upstream can be asked, so it may accept what the mirror says is used up. */
  isReachable: boolean;
  maxPending: number;
  /** An agent below has pushed it, and may have answered its caller at `takenAt`. */
  pushed?: { id: string; takenAt: number | null };
};

/** `operationId`: wait for it before the caller is answered; null: answer at once. */
export type QueuedRedemption = RedeemedCoupon & { operationId: string | null };

/** Redeems a coupon of the mirror, and queues the redemption for the upstream. */
export async function queueRedemption(
  transaction: Transaction,
  { isReachable, maxPending, pushed, ...sent }: QueueRedemption,
  context: Context,
): Promise<Result<QueuedRedemption>> {
  const takenAt = pushed?.takenAt ?? null;
  const command = { ...sent, takenAt };
  const isPushing = protocolOf(transaction) === 'latchkey';
  const within = await redeemMirroredCoupon(transaction, command, context);
  const isAllowed = isReachable || takenAt !== null;
  const mayAskAnyway = !within.ok && isPushing && isAllowed && isOnlyUsedUp(within.problem.reasons);
  const redeemed = mayAskAnyway
    ? await redeemMirroredCoupon(transaction, { ...command, isUnlimited: true }, context)
    : within;
  if (!redeemed.ok) return redeemed;
  if (!isPushing) return { ...redeemed, value: { ...redeemed.value, operationId: null } };
  if (!redeemed.value.isNew) {
    const open = transaction.operations.tail(command.order, 'order');
    const operationId = open?.kind === 'redeem' && isAwaited(open) ? open.id : null;
    return { ...redeemed, value: { ...redeemed.value, operationId } };
  }
  const room = refuseWhenFull(transaction, maxPending);
  if (!room.ok) return room;
  const { redemption } = redeemed.value;
  const wait = { isUsedUp: mayAskAnyway, isAwaited: takenAt === null };
  const payload = redeemPayloadFor(redemption, { ...wait, at: takenAt ?? context.now });
  if (payload === null) return tooLong();
  const operation = enqueue(
    transaction,
    {
      ...(pushed !== undefined && { id: pushed.id }),
      kind: 'redeem',
      subject: command.order,
      productId: null,
      payload: JSON.stringify(payload),
    },
    context,
  );
  return done({ redemption, isNew: true, operationId: operation.id });
}

function isOnlyUsedUp(reasons: readonly string[] | undefined): boolean {
  return reasons?.length === 1 && reasons[0] === 'usage_limit_reached';
}

function tooLong(): Result<never> {
  const detail = `The cart is too long: an agent sends at most ${maxCartBytes} bytes of it.`;
  return failWith('body_too_large', detail);
}

/** Whether only the upstream may accept the redemption, and it has not answered: void it and refuse the caller. */
export function isUndecided(operation: Operation): boolean {
  return isUnfinished(operation) && isAwaited(operation) && redeemPayload(operation).isUsedUp === true;
}

/** `isPending`: the upstream has not said anything yet. */
export type AnsweredRedemption = RedeemedCoupon & { isPending: boolean };

/** `queued`: null: the response that is stored under the idempotency key is repeated. */
type AnswerRedemption = { queued: QueuedRedemption | null };

/** What the caller is answered after its wait: what the upstream has said, or else what the mirror says. */
export function answerRedemption(
  { operations, redemptions }: Transaction,
  { queued }: AnswerRedemption,
): Result<AnsweredRedemption> {
  if (queued === null) throw new Error('only a stored response can be repeated');
  const { operationId, ...redeemed } = queued;
  const unchanged = redeemed.isNew ? {} : ({ unchanged: true } as const);
  const operation = operationId === null ? null : operations.get(operationId);
  if (operation === null) return { ...done({ ...redeemed, isPending: false }), ...unchanged };
  const refusal = refusalOf(operation);
  if (refusal !== null) return refuseAsUpstream(refusal);
  const isPending = isUnfinished(operation);
  if (isPending) operations.put(endAwait(operation));
  const stored = redemptions.get(defaultAccountId, redeemed.redemption.order);
  return { ...done({ ...redeemed, redemption: stored ?? redeemed.redemption, isPending }), ...unchanged };
}

/** `id`: an agent below has pushed it. */
type QueueVoid = { accountId: string; order: string; maxPending: number; id?: string };

/** `operationId`: null: nothing is sent to the upstream. */
type QueuedVoid = { order: string; couponId: number; operationId: string | null };

/** Voids a redemption here, and queues that for the upstream. */
export async function queueVoid(
  transaction: Transaction,
  { accountId, order, maxPending, id }: QueueVoid,
  context: Context,
): Promise<Result<QueuedVoid>> {
  const voided = await voidRedemption(transaction, { accountId, order });
  if (!voided.ok) return voided;
  const { operations } = transaction;
  const last = operations.tail(order, 'order');
  const dead = operations.dead(order).filter(({ kind }) => kind === 'redeem');
  for (const redeem of [...dead, ...operations.held(order, 'order')]) {
    if (redeem.kind === 'redeem') move(transaction, redeem, { type: 'superseded', at: context.now });
  }
  const isUnsent = last !== null && wasNeverSent(last);
  if (isUnsent) move(transaction, last, { type: 'cancel', at: context.now });
  const isWaiting = last !== null && !isHeld(last);
  const isTold = protocolOf(transaction) === 'latchkey' || isWaiting;
  if (isUnsent || dead.length > 0 || !isTold) return done({ ...voided.value, operationId: null });
  const room = refuseWhenFull(transaction, maxPending);
  if (!room.ok) return room;
  const given = id === undefined ? {} : { id };
  const operation = enqueue(
    transaction,
    { ...given, kind: 'void', subject: order, productId: null },
    context,
  );
  return done({ ...voided.value, operationId: operation.id });
}

function wasNeverSent({ kind, attempts, progress }: Operation): boolean {
  return kind === 'redeem' && attempts === 0 && progress.state === 'pending' && !progress.maybeApplied;
}

type Applied = Extract<PushedResult, { outcome: 'applied' }>;

/** The upstream has counted the redemption. A caller that was answered before keeps its answer. */
export function recordRedeemed(
  transaction: Transaction,
  operation: Operation,
  { quote, overLimit }: Omit<Applied, 'outcome'>,
  { now }: Context,
): void {
  const { redemptions } = transaction;
  const { subject: order } = operation;
  const stored = isCurrent(transaction, operation) ? redemptions.get(defaultAccountId, order) : null;
  const answered = stored?.quote.discount ?? null;
  const isOther = stored !== null && quote !== undefined && quote !== null;
  const isAdopted = isOther && isAwaited(operation);
  // After a restore, the upstream decides about the limit again.
  if (stored !== null && (isAdopted || overLimit !== stored.overLimit)) {
    const { overLimit: _, ...redemption } = stored;
    redemptions.remove(defaultAccountId, order);
    redemptions.add(defaultAccountId, {
      ...redemption,
      ...(isAdopted && { quote: { ...quote, couponId: stored.couponId } }),
      ...(overLimit === true && { overLimit }),
    });
  }
  const lastError =
    isOther && !isAdopted && quote.discount !== answered
      ? `the upstream takes off ${quote.discount} cents, and the caller was answered ${answered}`
      : operation.lastError;
  move(transaction, { ...operation, lastError }, { type: 'applied', certain: true, at: now });
}

/** Whether the stored redemption of the order is that of this operation: no later change of the order waits. */
function isCurrent({ operations }: Transaction, { subject, seq }: Operation): boolean {
  return operations.queue(subject, 'order').every((each) => each.seq <= seq);
}

type Rejected = Exclude<PushedResult, Applied>;

/** The upstream has refused the redemption. */
export function recordRedeemRefused(
  transaction: Transaction,
  operation: Operation,
  { code, reasons }: Rejected,
  context: Context,
): void {
  const { redemptions } = transaction;
  const refusal = { code, ...(reasons !== undefined && { reasons }) };
  if (isAwaited(operation)) {
    if (isCurrent(transaction, operation)) redemptions.remove(defaultAccountId, operation.subject);
    move(transaction, withRefusal(operation, refusal), { type: 'cancel', at: context.now });
    return;
  }
  const why = [code, ...(reasons ?? [])].join(', ');
  const payload = redeemPayload(operation);
  if (payload.provisional) {
    refuseOperation(transaction, operation, { cause: 'refused', detail: `the upstream answered ${why}` });
    return;
  }
  // Its caller was answered while the push was under way.
  const lastError = `the upstream answered ${why}; it is sent again as provisional`;
  move(transaction, { ...operation, lastError }, { type: 'not_applied' });
}

/** The upstream has refused to void a redemption. If it has none, that is what was asked for. */
export function recordVoidRefused(
  transaction: Transaction,
  operation: Operation,
  { code }: Rejected,
  { now }: Context,
): void {
  const detail = `the upstream answered ${code}`;
  if (code === 'redemption_not_found') {
    move(transaction, { ...operation, lastError: detail }, { type: 'cancel', at: now });
  } else {
    refuseOperation(transaction, operation, { cause: 'refused', detail });
  }
}

/** A person gives the redemption up: it is removed here. */
export function dropRedemption(transaction: Transaction, operation: Operation): void {
  if (isCurrent(transaction, operation)) transaction.redemptions.remove(defaultAccountId, operation.subject);
}
