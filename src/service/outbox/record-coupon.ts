import type { Coupon } from '../../domain/coupon.ts';
import type { Operation } from '../../domain/operation.ts';
import { isOutage, type NotApplied, type Outcome } from '../../domain/outcome.ts';
import { done, refuse, type Result } from '../../domain/problem.ts';
import { hasTerms, provisionalCoupon } from './coupon-payload.ts';
import { move, scheduleHead, waitAfterFailure } from './lane.ts';
import type { Context } from '../ports.ts';
import type { SyncPolicy } from './policy.ts';
import type { Transaction } from '../tables.ts';

export type RecordCouponAnswer = { operationId: string; outcome: Outcome<Coupon>; policy: SyncPolicy };

/** Records what became of a queued creation that was sent. */
export function recordCouponAnswer(
  transaction: Transaction,
  { operationId, outcome, policy }: RecordCouponAnswer,
  context: Context,
): Result<Operation> {
  const operation = transaction.operations.get(operationId);
  if (operation === null || operation.progress.state !== 'in_flight') {
    return refuse('operation_not_open', 'The operation is not in flight.');
  }
  if (outcome.outcome === 'applied') {
    return done(confirm(transaction, operation, { ...outcome, event: 'applied' }, context));
  }
  const wait = waitAfterFailure(operation, { ...outcome, outage: isOutage(outcome) }, policy, context);
  if (outcome.outcome === 'ambiguous') {
    const doubted = move(transaction, operation, { type: 'ambiguous' });
    const at = context.steady + Math.max(policy.fenceMs, outcome.retryAfterMs ?? 0);
    scheduleHead(transaction, operation.subject, 'coupon', { ...wait, at, outage: false });
    return done(doubted);
  }
  if (isRefusal(outcome)) return done(bury(transaction, operation, outcome.detail, 'refused'));
  const waiting = move(transaction, operation, { type: 'not_applied' });
  scheduleHead(transaction, operation.subject, 'coupon', wait);
  return done(waiting);
}

/** Whether the upstream will never take this creation: its terms, or its code, are not to its liking. */
function isRefusal({ reason }: NotApplied): boolean {
  return reason === 'refused' || reason === 'rejected' || reason === 'missing';
}

export type RecordCouponListing = {
  operationId: string;
  /** The upstream's coupon with this code; null: it has none. */
  listed: Coupon | null;
  confirmedAt: number;
};

/** Settles a creation whose answer was lost by the upstream's list (sync design, section 3). */
export function recordCouponListing(
  transaction: Transaction,
  { operationId, listed, confirmedAt }: RecordCouponListing,
  context: Context,
): Result<Operation> {
  const operation = transaction.operations.get(operationId);
  if (operation === null || operation.progress.state !== 'uncertain') {
    return refuse('operation_not_open', 'The operation is not in doubt.');
  }
  if (listed === null) {
    const again = move(transaction, operation, { type: 'read_absent', certain: true });
    scheduleHead(transaction, operation.subject, 'coupon', { at: context.steady });
    return done(again);
  }
  if (hasTerms(listed, provisionalCoupon(operation))) {
    return done(confirm(transaction, operation, { value: listed, confirmedAt, event: 'listed' }, context));
  }
  transaction.mirror.put({ coupon: listed, confirmedAt });
  return done(bury(transaction, operation, 'the upstream has another coupon with this code', 'conflict'));
}

function confirm(
  transaction: Transaction,
  operation: Operation,
  { value, confirmedAt, event }: { value: Coupon; confirmedAt: number; event: 'applied' | 'listed' },
  { now }: Context,
): Operation {
  const provisionalId = provisionalCoupon(operation).id;
  transaction.mirror.remove(provisionalId);
  transaction.mirror.put({ coupon: value, confirmedAt });
  transaction.mirror.alias(provisionalId, value.id);
  return move(
    transaction,
    operation,
    event === 'applied' ? { type: 'applied', at: now } : { type: 'read_applied', certain: true, at: now },
  );
}

/** The coupon does not come to be: it leaves the mirror, and its operation waits for a person. */
function bury(
  transaction: Transaction,
  operation: Operation,
  lastError: string,
  type: 'refused' | 'conflict',
): Operation {
  transaction.mirror.remove(provisionalCoupon(operation).id);
  return move(transaction, { ...operation, lastError }, { type });
}
