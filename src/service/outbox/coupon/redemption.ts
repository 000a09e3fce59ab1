import { defaultAccountId } from '../../../domain/access/principal.ts';
import { foldCouponCode } from '../../../domain/checkout/coupon.ts';
import type { Cart, Redemption } from '../../../domain/checkout/quote.ts';
import {
  endAwait,
  isAwaited,
  refusalOf,
  refuseAsUpstream,
  withRefusal,
  type Refusal,
  maxCartBytes,
  redeemPayload,
  redeemPayloadFor,
  sentRedemption,
} from '../../../domain/outbox/coupon-payload.ts';
import {
  isHeld,
  isUnfinished,
  mayHaveBeenApplied,
  type Operation,
} from '../../../domain/outbox/operation.ts';
import type { NotApplied, Outcome } from '../../../domain/outbox/outcome.ts';
import { done, failWith, type Result } from '../../../domain/problem/problem.ts';
import { isOnlyUsedUp, redeemMirroredCoupon, voidRedemption } from '../../checkout.ts';
import { confirmTime } from '../../lifecycle/time-mark.ts';
import type { Context, Keyed, StoredRedemption } from '../../ports.ts';
import type { Reader, Transaction } from '../../tables.ts';
import { recordUndecided, refusalIn } from '../latchkey-response.ts';
import { enqueue, move, refuseWhenFull, scheduleHead, type SyncPolicy } from '../queue.ts';
import { operationInFlight, recordOutcome } from '../after-response.ts';
import { isLatchkey, isPlain } from '../upstream/identity.ts';
import { observeEpoch } from '../upstream/change.ts';

/*
 * Redemptions of an agent whose upstream is a Latchkey. The upstream decides, so that the usage limit of a coupon holds
 * over all agents. While the upstream cannot be reached, the mirror decides, and the redemption is sent with the time at
 * which its caller was answered: the upstream accepts it over the limit. (src/sync/BETWEEN-LATCHKEYS.md, Redemptions and coupons)
 */

/** Whether redemptions are sent to the upstream. They wait until an answer has shown what the upstream is. */
export function sendsRedemptions(reader: Pick<Reader, 'settings'>): boolean {
  return !isPlain(reader);
}

type QueueRedemption = {
  accountId: string;
  order: string;
  cart: Cart;
  /** When an agent below answered its caller (epoch ms); null: the caller waits. */
  takenAt?: number | null;
  /** The upstream can be asked, so it may accept what the mirror says is used up. */
  isReachable: boolean;
  maxPending: number;
  /** The request of an agent below. */
  below?: Keyed | null;
};

/**
 * `redemption`: null: only the upstream can say. `operationId`: wait for it before the caller is answered; null: answer
 * at once.
 */
export type QueuedRedemption = { redemption: Redemption | null; isNew: boolean; operationId: string | null };

/** Redeems a coupon of the mirror, and queues the redemption for the upstream. */
export async function queueRedemption(
  transaction: Transaction,
  { isReachable, maxPending, below = null, ...command }: QueueRedemption,
  context: Context,
): Promise<Result<QueuedRedemption>> {
  const { takenAt = null, order } = command;
  const within = await redeemMirroredCoupon(transaction, command, context);
  if (!sendsRedemptions(transaction)) {
    return within.ok ? { ...within, value: { ...within.value, operationId: null } } : within;
  }
  const mayAskAnyway =
    !within.ok && isReachable && isLatchkey(transaction) && isOnlyUsedUp(within.problem.reasons);
  const redeemed = mayAskAnyway
    ? await redeemMirroredCoupon(transaction, { ...command, isUnlimited: true }, context)
    : within;
  // What an agent below has accepted, only the upstream may refuse.
  const isForUpstream = !redeemed.ok && takenAt !== null && redeemed.problem.code === 'coupon_not_redeemable';
  if (!redeemed.ok && !isForUpstream) return redeemed;
  const { redemption, isNew } = redeemed.ok ? redeemed.value : { redemption: null, isNew: true };
  const open = openRedeem(transaction, order);
  // The upstream has refused the operation with this id, or the redemption was voided since.
  const isUsedId = below !== null && transaction.operations.get(below.id) !== null;
  // The request of an agent below is sent on under its id, so that the upstream recognizes a repetition.
  const mayJoin = below === null || isUsedId;
  const isRepeated = redeemed.ok ? !isNew : open?.id === below?.id;
  if (mayJoin && open !== null && isRepeated) {
    return done({ redemption, isNew: false, operationId: joinRedeem(transaction, open, takenAt) });
  }
  if (mayJoin && redeemed.ok && !isNew) {
    return { ...redeemed, value: { ...redeemed.value, operationId: null } };
  }
  const room = refuseWhenFull(transaction, maxPending);
  if (!room.ok) return room;
  const payload = redeemPayloadFor(command.cart, {
    at: Math.min(takenAt ?? Infinity, context.now),
    ...(mayAskAnyway && { isUsedUp: true }),
    ...(isForUpstream && { isAnsweredBelow: true }),
    ...((takenAt === null || isForUpstream) && { isAwaited: true }),
  });
  if (payload === null) return tooLong();
  // If the upstream may have the redemption from another request, a void of it must be sent.
  const unanswered = !isNew || transaction.operations.tail(order, 'order')?.kind === 'redeem';
  const own = { kind: 'redeem', subject: order, productId: null, payload, unanswered } as const;
  const operation = enqueue(transaction, { ...own, below: isUsedId ? null : below }, context);
  return done({ redemption, isNew, operationId: isAwaited(operation) ? operation.id : null });
}

/** The last change of the order, if that is a redemption that waits. */
function openRedeem({ operations }: Transaction, order: string): Operation | null {
  const last = operations.tail(order, 'order');
  return last?.kind === 'redeem' && !isHeld(last) ? last : null;
}

/** The same redemption is asked for again. Returns the operation to wait for. */
function joinRedeem(
  { operations }: Transaction,
  operation: Operation,
  takenAt: number | null,
): string | null {
  if (!isAwaited(operation)) return null;
  if (takenAt === null || redeemPayload(operation).isAnsweredBelow === true) return operation.id;
  operations.put(endAwait(operation));
  return null;
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
export type AnsweredRedemption = { redemption: Redemption; isNew: boolean; isPending: boolean };

/** `queued`: null: the response that is stored under the idempotency key is repeated. */
type AnswerRedemption = { order: string; queued: QueuedRedemption | null };

/** What the caller is answered after its wait: what the upstream has said, or else what the mirror says. */
export function answerRedemption(
  { operations, redemptions }: Transaction,
  { order, queued }: AnswerRedemption,
): Result<AnsweredRedemption> {
  if (queued === null) throw new Error('only a stored response can be repeated');
  const { operationId, isNew } = queued;
  const operation = operationId === null ? null : operations.get(operationId);
  const refusal = operation === null ? null : refusalOf(operation);
  if (refusal !== null) return refuseAsUpstream(refusal);
  const redemption = redemptions.get(defaultAccountId, order) ?? queued.redemption;
  const isPending = operation !== null && isUnfinished(operation);
  if (redemption === null) {
    return failWith('upstream_unreachable', 'Only the upstream can say whether the coupon is redeemed.');
  }
  if (isPending) operations.put(endAwait(operation));
  return { ...done({ redemption, isNew, isPending }), ...(!isNew && { unchanged: true as const }) };
}

type QueueVoid = {
  accountId: string;
  order: string;
  maxPending: number;
  /** The request of an agent below. */
  below?: Keyed | null;
};

/** `couponId`: null: only the upstream may know it. `operationId`: null: nothing is sent to the upstream. */
type QueuedVoid = { order: string; couponId: number | null; operationId: string | null };

/** Voids a redemption here, and queues that for the upstream. */
export async function queueVoid(
  transaction: Transaction,
  { accountId, order, maxPending, below = null }: QueueVoid,
  context: Context,
): Promise<Result<QueuedVoid>> {
  const { operations } = transaction;
  const sent = below === null ? null : operations.get(below.id);
  if (sent !== null) return { ...done({ order, couponId: null, operationId: sent.id }), unchanged: true };
  const voided = await voidRedemption(transaction, { accountId, order }, context);
  // An agent below may have redeemed a coupon before this agent lost its store.
  if (!voided.ok && below === null) return voided;
  const couponId = voided.ok ? voided.value.couponId : null;
  const last = operations.tail(order, 'order');
  const dead = operations.dead(order).filter(({ kind }) => kind === 'redeem');
  for (const redeem of [...dead, ...operations.held(order, 'order')]) {
    if (redeem.kind === 'redeem') move(transaction, redeem, { type: 'superseded', at: context.now });
  }
  const isUnsent = last !== null && wasNeverSent(last);
  if (isUnsent) move(transaction, last, { type: 'cancel', at: context.now });
  const isWaiting = last !== null && !isHeld(last);
  const isTold = sendsRedemptions(transaction) || isWaiting;
  if (isUnsent || dead.length > 0 || !isTold) return done({ order, couponId, operationId: null });
  const room = refuseWhenFull(transaction, maxPending);
  if (!room.ok) return room;
  const operation = enqueue(transaction, { below, kind: 'void', subject: order, productId: null }, context);
  return done({ order, couponId, operationId: operation.id });
}

function wasNeverSent(operation: Operation): boolean {
  const { kind, attempts, progress } = operation;
  return (
    kind === 'redeem' && attempts === 0 && progress.state === 'pending' && !mayHaveBeenApplied(operation)
  );
}

type RecordRedemptionResponse = {
  operationId: string;
  /** Null: the redemption is voided. */
  outcome: Outcome<StoredRedemption | null>;
  /** The request said that the caller had been answered. */
  wasAnswered: boolean;
  /** When the request was sent, the creation of its coupon was in the outbox: it may have arrived before. */
  mayPrecedeCoupon: boolean;
  policy: SyncPolicy;
};

/** Records the answer to a redemption or a void that was sent under the id of its operation. */
export function recordRedemptionResponse(
  transaction: Transaction,
  { operationId, outcome, policy, ...sent }: RecordRedemptionResponse,
  context: Context,
): Result<Operation> {
  const lookup = operationInFlight(transaction, operationId);
  if (!lookup.ok) return lookup;
  const operation = lookup.value;
  return done(
    recordOutcome(
      transaction,
      operation,
      {
        outcome,
        policy,
        applied(answer) {
          confirmTime(transaction, answer.confirmedAt, context);
          observeEpoch(transaction, answer, context);
          recordRedeemed(transaction, operation, answer.value, context);
          scheduleHead(transaction, operation.subject, 'order', { at: context.monotonic });
        },
        notApplied: (answer) =>
          recordNotRedeemed(transaction, operation, { outcome: answer, policy, ...sent }, context),
      },
      context,
    ),
  );
}

/** The upstream has counted the redemption, or voided it. A caller that was answered before keeps its answer. */
function recordRedeemed(
  transaction: Transaction,
  operation: Operation,
  said: StoredRedemption | null,
  context: Context,
): void {
  const { now } = context;
  const isShown = said !== null && isCurrent(transaction, operation);
  const isVoidedHere = isShown && wasVoided(transaction, operation);
  const lastError = isShown && !isVoidedHere ? showRedemption(transaction, operation, said) : null;
  const answered = operation.payload === null ? operation : endAwait(operation);
  const isDifferent = lastError === null ? {} : { lastError };
  move(transaction, { ...answered, ...isDifferent }, { type: 'applied', certain: true, at: now });
  if (isVoidedHere)
    enqueue(transaction, { kind: 'void', subject: operation.subject, productId: null }, context);
}

/**
 * The upstream was restored, and its redemption was sent again. The upstream did not know the redemption when it was
 * voided, so that nothing else voids it now.
 */
function wasVoided({ redemptions }: Transaction, operation: Operation): boolean {
  const isHere = redemptions.get(defaultAccountId, operation.subject) !== null;
  return !isHere && redeemPayload(operation).isAnsweredBelow !== true;
}

/** Shows the redemption of the upstream. Returns what a person should know about it. */
function showRedemption(
  { redemptions, mirror }: Transaction,
  operation: Operation,
  { quote, isOverLimit }: StoredRedemption,
): string | null {
  const { subject: order } = operation;
  const stored = redemptions.get(defaultAccountId, order);
  const couponId = stored?.couponId ?? mirror.byCode(quote.code)?.coupon.id ?? quote.couponId;
  if (couponId === null) return null;
  const isKept = stored !== null && !isAwaited(operation);
  const { at } = redeemPayload(operation);
  const { cart } = sentRedemption(operation);
  const shown: Redemption = stored ?? { order, couponId, cart, quote, redeemedAt: at };
  const { overLimit: _, ...redemption } = shown;
  redemptions.remove(defaultAccountId, order);
  redemptions.add(defaultAccountId, {
    ...redemption,
    ...(!isKept && { quote: { ...quote, couponId } }),
    // After a restore, the upstream decides about the limit again.
    ...(isOverLimit && { overLimit: true as const }),
  });
  const answered = redemption.quote.discount;
  return isKept && quote.discount !== answered
    ? `the upstream takes off ${quote.discount} cents, and the caller was answered ${answered}`
    : null;
}

/** Whether the stored redemption of the order is that of this operation: no later change of the order waits. */
function isCurrent({ operations }: Transaction, { subject, seq }: Operation): boolean {
  return operations.queue(subject, 'order').every((each) => each.seq <= seq);
}

type NotRedeemed = Omit<RecordRedemptionResponse, 'operationId' | 'outcome'> & { outcome: NotApplied };

function recordNotRedeemed(
  transaction: Transaction,
  operation: Operation,
  { outcome, wasAnswered, mayPrecedeCoupon, policy }: NotRedeemed,
  context: Context,
): void {
  const refusal = refusalIn(outcome);
  const isUnknown = refusal?.reasons?.includes('unknown_code') === true;
  const waitsForCoupon = isUnknown && (mayPrecedeCoupon || hasUncreatedCoupon(transaction, operation));
  if (refusal === null || waitsForCoupon) {
    recordUndecided(transaction, operation, { outcome, policy }, context);
    return;
  }
  if (operation.kind === 'redeem' && isAwaited(operation)) {
    dropRedemption(transaction, operation);
    const ended = { ...withRefusal(operation, refusal), lastError: describe(refusal) };
    move(transaction, ended, { type: 'cancel', at: context.now });
  } else if (operation.kind === 'redeem' && !wasAnswered) {
    // Its caller was answered while the request was under way.
    const lastError = `${describe(refusal)}; it is sent again as answered`;
    move(transaction, { ...operation, lastError }, { type: 'not_applied' });
  } else {
    const refused = { ...operation, lastError: describe(refusal) };
    move(transaction, refused, { type: 'refused', cause: 'refused' });
  }
  scheduleHead(transaction, operation.subject, 'order', { at: context.monotonic });
}

/** Whether the creation of the coupon that an operation redeems is in the outbox. */
function hasUncreatedCoupon({ operations }: Transaction, operation: Operation): boolean {
  if (operation.kind !== 'redeem') return false;
  const { code } = sentRedemption(operation).cart;
  return operations.tail(foldCouponCode(code), 'coupon') !== null;
}

function describe({ code, reasons = [] }: Refusal): string {
  return `the upstream answered ${[code, ...reasons].join(', ')}`;
}

/** The redemption is removed here: a person gives it up, or the upstream has refused it. */
export function dropRedemption(transaction: Transaction, operation: Operation): void {
  if (isCurrent(transaction, operation)) transaction.redemptions.remove(defaultAccountId, operation.subject);
}
