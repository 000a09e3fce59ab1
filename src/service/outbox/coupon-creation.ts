import {
  foldCouponCode,
  isPlainCouponCode,
  unusualCode,
  type CouponTerms,
  type Coupon,
} from '../../domain/checkout/coupon.ts';
import { done, refuse, refuseParameters, type Result } from '../../domain/problem/problem.ts';
import type { Context, Idempotency } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import type { MirroredCoupon } from '../agent/tables.ts';
import { enqueue, refuseWhenFull, nextReconcileAt, move, scheduleHead, type SyncPolicy } from './queue.ts';
import { send } from './plan-step.ts';
import type { Operation } from '../../domain/outbox/operation.ts';
import { isRefused, type NotApplied, type Outcome } from '../../domain/outbox/outcome.ts';
import { confirmTime } from '../lifecycle/clock-mark.ts';
import { awaitNextAttempt, operationInFlight, recordAmbiguous, refuseOperation } from './record-answer.ts';
import { couponPayload, provisionalCoupon, hasTerms, adoptCoupon } from './provisional-coupon.ts';

type QueueCoupon = {
  terms: CouponTerms;
  /**
   * It is sent at once, for the caller who waits: it is committed as in flight, so that a process that ends
   * before the answer finds out by the upstream's list what became of it. It waits all the same where an earlier
   * request for this code may still be on its way.
   */
  isSentNow: boolean;
  maxPending: number;
};

/** The coupon under its provisional id, and the operation that creates it; `isSent`: it is to be sent now. */
export type QueuedCoupon = MirroredCoupon & { operationId: string; isSent: boolean };

/** Keeps a coupon under a provisional id, with the operation that will create it upstream. */
export function queueCoupon(
  transaction: Transaction,
  { terms, isSentNow, maxPending }: QueueCoupon,
  context: Context,
): Result<QueuedCoupon> {
  const { mirror } = transaction;
  if (!isPlainCouponCode(terms.code)) return refuseParameters([unusualCode]);
  // Where the upstream can be asked, it says itself what it thinks of a code that it has.
  if (mirror.provisionalByCode(terms.code) !== null || (!isSentNow && mirror.byCode(terms.code) !== null)) {
    return refuseTakenCode();
  }
  const room = refuseWhenFull(transaction, maxPending);
  if (!room.ok) return room;
  const coupon = { ...terms, id: mirror.provisionalId() };
  const mirrored = { coupon, confirmedAt: null };
  mirror.put(mirrored);
  const subject = foldCouponCode(terms.code);
  const isSent = isSentNow && isQueueFree(transaction, subject, context);
  const operation = enqueue(
    transaction,
    {
      kind: 'create_coupon',
      subject,
      productKey: null,
      payload: couponPayload(coupon),
    },
    context,
  );
  if (isSent) send(transaction, operation, { baseUses: null, at: context.elapsed });
  return done({ ...mirrored, operationId: operation.id, isSent });
}

/** The refusal of a code that a coupon has which is known here. */
export function refuseTakenCode(): Result<never> {
  return refuse('coupon_code_taken', 'There already is a coupon with this code.');
}

function isQueueFree(transaction: Transaction, subject: string, { elapsed }: Context): boolean {
  const isEmpty = transaction.operations.tail(subject, 'coupon') === null;
  return (
    isEmpty && nextReconcileAt(transaction, { subject, queue: 'coupon', asDisable: false }, elapsed) === null
  );
}

type RecordCouponAnswer = {
  operationId: string;
  outcome: Outcome<Coupon>;
  /** The caller who waits for the answer: a refusal is passed on, and the creation is undone. Null: none. */
  caller: { idempotency: Idempotency | null } | null;
  policy: SyncPolicy;
};

/** Records what became of a creation that was sent. */
export function recordCouponAnswer(
  transaction: Transaction,
  command: RecordCouponAnswer,
  context: Context,
): Result<Operation> {
  const { operationId, outcome } = command;
  const found = operationInFlight(transaction, operationId);
  if (!found.ok) return found;
  const operation = found.value;
  switch (outcome.outcome) {
    case 'applied':
      recordCreated(transaction, operation, { ...command, outcome }, context);
      break;
    case 'not_applied':
      recordNotCreated(transaction, operation, { ...command, outcome }, context);
      break;
    case 'ambiguous':
      recordAmbiguous(transaction, operation, { ...command, outcome }, context);
      break;
    default:
      outcome satisfies never;
  }
  return done(transaction.operations.get(operationId) ?? operation);
}

type Answered<Kind extends Outcome<Coupon>['outcome']> = RecordCouponAnswer & {
  outcome: Extract<Outcome<Coupon>, { outcome: Kind }>;
};

function recordCreated(
  transaction: Transaction,
  operation: Operation,
  { outcome, caller }: Answered<'applied'>,
  context: Context,
): void {
  confirm(transaction, operation, { ...outcome, event: 'applied' }, context);
  const { value: coupon, confirmedAt } = outcome;
  const kept = { coupon, confirmedAt, operationId: operation.id, isSent: false };
  keepForRepeats(transaction, caller?.idempotency ?? null, kept, context);
}

function recordNotCreated(
  transaction: Transaction,
  operation: Operation,
  { outcome, caller, policy }: Answered<'not_applied'>,
  context: Context,
): void {
  if (caller !== null && (isRefused(outcome) || isKnownCode(transaction, operation))) {
    leaveNothing(transaction, operation, caller, context);
  } else if (isRefusal(outcome)) {
    const refused = refuseOperation(transaction, operation, { cause: 'refused', detail: outcome.detail });
    // One that is held may have been created: its code stays taken.
    if (refused.progress.state === 'dead') transaction.mirror.remove(provisionalCoupon(operation).id);
  } else {
    const waiting = move(transaction, operation, { type: 'not_applied' });
    awaitNextAttempt(transaction, waiting, { outcome, policy }, context);
  }
}

/**
 * Whether the upstream has shown a coupon with the code of a creation: it alone can say what it thinks of another, and
 * one that waited for it would be shown, and redeemed, in the place of its own.
 */
function isKnownCode({ mirror }: Transaction, operation: Operation): boolean {
  const { code } = provisionalCoupon(operation);
  return mirror.list({ limit: 10, offset: 0 }, { code }).some(({ confirmedAt }) => confirmedAt !== null);
}

/** A repeated request is answered with the coupon as the upstream has it. */
function keepForRepeats(
  transaction: Transaction,
  idempotency: Idempotency | null,
  coupon: QueuedCoupon,
  { now }: Context,
): void {
  if (idempotency === null) return;
  const { credential, key, fingerprint } = idempotency;
  const value = done(coupon);
  transaction.idempotency.put(credential, key, { fingerprint, value, at: now, unchanged: false });
}

/** Whether the upstream will never accept this creation: it refuses the terms or the code. */
function isRefusal({ reason }: NotApplied): boolean {
  return reason === 'refused' || reason === 'rejected' || reason === 'missing';
}

/** Undoes the creation: the caller gets a refusal, and may send the same request again. */
function leaveNothing(
  transaction: Transaction,
  operation: Operation,
  { idempotency }: { idempotency: Idempotency | null },
  { now }: Context,
): void {
  transaction.mirror.remove(provisionalCoupon(operation).id);
  if (idempotency !== null) transaction.idempotency.remove(idempotency.credential, idempotency.key);
  move(transaction, operation, { type: 'cancel', at: now });
}

type RecordCouponListing = {
  operationId: string;
  /** The upstream's coupon with this code; null: it has none. */
  listed: Coupon | null;
  confirmedAt: number;
};

/** Reconciles a creation whose answer was lost by the upstream's list (src/sync/README.md, Coupons). */
export function recordCouponListing(
  transaction: Transaction,
  { operationId, listed, confirmedAt }: RecordCouponListing,
  context: Context,
): Result<Operation> {
  const operation = transaction.operations.get(operationId);
  if (operation === null || operation.progress.state !== 'uncertain') {
    return refuse('operation_not_open', 'The operation is not uncertain.');
  }
  if (listed === null) {
    const again = move(transaction, operation, { type: 'read_absent', certain: true });
    scheduleHead(transaction, operation.subject, 'coupon', { at: context.elapsed });
    return done(again);
  }
  if (hasTerms(listed, provisionalCoupon(operation))) {
    return done(confirm(transaction, operation, { value: listed, confirmedAt, event: 'listed' }, context));
  }
  confirmTime(transaction, confirmedAt);
  transaction.mirror.put({ coupon: listed, confirmedAt });
  transaction.mirror.remove(provisionalCoupon(operation).id);
  const lastError = 'the upstream has another coupon with this code';
  return done(move(transaction, { ...operation, lastError }, { type: 'conflict' }));
}

function confirm(
  transaction: Transaction,
  operation: Operation,
  { value, confirmedAt, event }: { value: Coupon; confirmedAt: number; event: 'applied' | 'listed' },
  { now }: Context,
): Operation {
  confirmTime(transaction, confirmedAt);
  adoptCoupon(transaction, provisionalCoupon(operation).id, { coupon: value, confirmedAt });
  return move(
    transaction,
    operation,
    event === 'applied'
      ? { type: 'applied', certain: false, at: now }
      : { type: 'read_applied', certain: true, at: now },
  );
}
