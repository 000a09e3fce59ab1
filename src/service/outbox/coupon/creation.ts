import {
  foldCouponCode,
  isPlainCouponCode,
  malformedCode,
  type CouponTerms,
  type Coupon,
} from '../../../domain/checkout/coupon.ts';
import { done, failWith, failWithFaults, type Result } from '../../../domain/problem/problem.ts';
import type { Context, Idempotency, Keyed } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import { keptUntil } from '../../idempotency.ts';
import type { MirroredCoupon } from '../../agent/tables.ts';
import { enqueue, refuseWhenFull, nextReconcileAt, move, scheduleHead, type SyncPolicy } from '../queue.ts';
import { send } from '../plan-step.ts';
import type { Operation } from '../../../domain/outbox/operation.ts';
import { isRefused, type Applied, type NotApplied, type Outcome } from '../../../domain/outbox/outcome.ts';
import { confirmTime } from '../../lifecycle/time-mark.ts';
import { recordCreationAtLatchkey, recordRefusalOfLatchkey } from './latchkey-creation.ts';
import { isKeyed } from '../upstream/identity.ts';
import { observeEpoch } from '../upstream/change.ts';
import { awaitNextAttempt, operationInFlight, recordOutcome, refuseOperation } from '../after-response.ts';
import { couponPayload, provisionalCoupon } from '../../../domain/outbox/coupon-payload.ts';
import { hasTerms, adoptCoupon, isKnownCode } from './provisional.ts';

type QueueCoupon = {
  terms: CouponTerms;
  /**
   * A caller waits: commit the operation as in flight and send it at once. If the process ends before the response,
   * the upstream's list shows whether the coupon was created. It still waits if an earlier request for this code may
   * arrive.
   */
  isSentNow: boolean;
  /** A caller waits for the answer of a Latchkey, which decides about a code that the mirror has. */
  isAwaited?: boolean;
  maxPending: number;
  /** The request of an agent below. */
  below?: Keyed | null;
};

/** The coupon under its provisional id, and the operation that creates it. `isSent`: send it now. */
export type QueuedCoupon = MirroredCoupon & { operationId: string; isSent: boolean };

/** Stores a coupon under a provisional id, with the operation that will create it at the upstream. */
export function queueCoupon(
  transaction: Transaction,
  { terms, isSentNow, isAwaited = false, maxPending, below = null }: QueueCoupon,
  context: Context,
): Result<QueuedCoupon> {
  const { mirror } = transaction;
  const repeated = below === null ? null : transaction.operations.get(below.id);
  if (repeated !== null) return done({ ...createdBy(transaction, repeated), isSent: false });
  if (!isPlainCouponCode(terms.code)) return failWithFaults([malformedCode]);
  // If the upstream can be reached, let it decide about a code that it already has.
  const isDecidedThere = isSentNow || isAwaited;
  if (
    mirror.provisionalByCode(terms.code) !== null ||
    (!isDecidedThere && mirror.byCode(terms.code) !== null)
  ) {
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
      below,
      kind: 'create_coupon',
      subject,
      productId: null,
      payload: couponPayload(coupon, isAwaited),
    },
    context,
  );
  if (isSent) send(transaction, operation, { baseUses: null, at: context.monotonic });
  return done({ ...mirrored, operationId: operation.id, isSent });
}

/** The coupon of an operation, as the upstream has it if the upstream has created it. */
function createdBy({ mirror }: Transaction, operation: Operation): Omit<QueuedCoupon, 'isSent'> {
  const coupon = provisionalCoupon(operation);
  return { ...(mirror.get(coupon.id) ?? { coupon, confirmedAt: null }), operationId: operation.id };
}

export function refuseTakenCode(): Result<never> {
  return failWith('coupon_code_taken', 'There already is a coupon with this code.');
}

function isQueueFree(transaction: Transaction, subject: string, { monotonic }: Context): boolean {
  const isEmpty = transaction.operations.tail(subject, 'coupon') === null;
  return (
    isEmpty &&
    nextReconcileAt(transaction, { subject, queue: 'coupon', asDisable: false }, monotonic) === null
  );
}

type RecordCouponResponse = {
  operationId: string;
  outcome: Outcome<Coupon>;
  /**
   * The caller that waits for the response: a refusal is passed on and undoes the creation. Null if no caller waits.
   */
  caller: { idempotency: Idempotency | null } | null;
  policy: SyncPolicy;
};

/** Records the response to a creation. */
export function recordCouponResponse(
  transaction: Transaction,
  command: RecordCouponResponse,
  context: Context,
): Result<Operation> {
  const { operationId, outcome, policy } = command;
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
        applied: (answer) => recordCreated(transaction, operation, { ...command, outcome: answer }, context),
        notApplied: (answer) =>
          recordNotCreated(transaction, operation, { ...command, outcome: answer }, context),
      },
      context,
    ),
  );
}

function recordCreated(
  transaction: Transaction,
  operation: Operation,
  { outcome, caller }: RecordCouponResponse & { outcome: Applied<Coupon> },
  context: Context,
): void {
  const { value: coupon, confirmedAt } = outcome;
  observeEpoch(transaction, outcome, context);
  if (isKeyed(operation)) {
    recordCreationAtLatchkey(transaction, operation, { coupon, confirmedAt }, context);
    return;
  }
  confirm(transaction, operation, { ...outcome, event: 'applied' }, context);
  const created = { coupon, confirmedAt, operationId: operation.id, isSent: false };
  storeForRepeats(transaction, caller?.idempotency ?? null, created, context);
}

function recordNotCreated(
  transaction: Transaction,
  operation: Operation,
  { outcome, caller, policy }: RecordCouponResponse & { outcome: NotApplied },
  context: Context,
): void {
  if (isKeyed(operation)) {
    recordRefusalOfLatchkey(transaction, operation, { outcome, policy }, context);
  } else if (
    caller !== null &&
    (isRefused(outcome) || isKnownCode(transaction, provisionalCoupon(operation)))
  ) {
    undoCreation(transaction, operation, caller, context);
  } else if (isFailure(outcome)) {
    const refused = refuseOperation(transaction, operation, { cause: 'refused', detail: outcome.detail });
    // A held creation may have been applied: its code stays taken.
    if (refused.progress.state === 'dead') transaction.mirror.remove(provisionalCoupon(operation).id);
  } else {
    const waiting = move(transaction, operation, { type: 'not_applied' });
    awaitNextAttempt(transaction, waiting, { outcome, policy }, context);
  }
}

/** A repeated request gets the coupon as the upstream has it. */
function storeForRepeats(
  transaction: Transaction,
  idempotency: Idempotency | null,
  coupon: QueuedCoupon,
  { now }: Context,
): void {
  if (idempotency === null) return;
  const { credential, key, fingerprint } = idempotency;
  const value = done(coupon);
  transaction.idempotency.put(credential, key, {
    fingerprint,
    value,
    until: keptUntil(idempotency, now),
    unchanged: false,
  });
}

/** Whether the upstream will never accept this creation: it refuses the terms or the code. */
function isFailure({ reason }: NotApplied): boolean {
  return reason === 'refused' || reason === 'rejected' || reason === 'missing';
}

/** Undoes the creation: the caller gets a refusal, and may send the same request again. */
function undoCreation(
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
  /** The upstream's coupon with this code; null if it has none. */
  listed: Coupon | null;
  confirmedAt: number;
};

/** Reconciles a creation whose response was lost with the upstream's list (src/sync/PLAIN-UPSTREAM.md, Coupons). */
export function recordCouponListing(
  transaction: Transaction,
  { operationId, listed, confirmedAt }: RecordCouponListing,
  context: Context,
): Result<Operation> {
  const operation = transaction.operations.get(operationId);
  if (operation === null || operation.progress.state !== 'uncertain') {
    return failWith('operation_not_open', 'The operation is not uncertain.');
  }
  const decided = decideByList(transaction, operation, { listed, confirmedAt }, context);
  // Another creation of the code that waits behind this one has no time yet, or keeps its own.
  const head = transaction.operations.head(operation.subject, 'coupon');
  if (head?.id === decided.id || head?.nextAt === null)
    scheduleHead(transaction, operation.subject, 'coupon', { at: context.monotonic });
  return done(decided);
}

function decideByList(
  transaction: Transaction,
  operation: Operation,
  { listed, confirmedAt: dated }: Omit<RecordCouponListing, 'operationId'>,
  context: Context,
): Operation {
  if (listed === null) return move(transaction, operation, { type: 'read_absent', certain: true });
  if (hasTerms(listed, provisionalCoupon(operation), isKeyed(operation))) {
    return confirm(transaction, operation, { value: listed, confirmedAt: dated, event: 'listed' }, context);
  }
  const confirmedAt = confirmTime(transaction, dated, context);
  transaction.mirror.put({ coupon: listed, confirmedAt });
  transaction.mirror.remove(provisionalCoupon(operation).id);
  const lastError = 'the upstream has another coupon with this code';
  return move(transaction, { ...operation, lastError }, { type: 'conflict' });
}

function confirm(
  transaction: Transaction,
  operation: Operation,
  { value, confirmedAt: dated, event }: { value: Coupon; confirmedAt: number; event: 'applied' | 'listed' },
  { now }: Context,
): Operation {
  const confirmedAt = confirmTime(transaction, dated, { now });
  adoptCoupon(transaction, provisionalCoupon(operation).id, { coupon: value, confirmedAt });
  return move(
    transaction,
    operation,
    event === 'applied'
      ? { type: 'applied', certain: false, at: now }
      : { type: 'read_applied', certain: true, at: now },
  );
}
