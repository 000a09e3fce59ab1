import { nextProgress, laneOf, type Operation, type OperationEvent } from '../domain/operation.ts';
import { done, refuse, type Result } from '../domain/problem.ts';
import { audit } from './audit.ts';
import { provisionalCoupon } from './coupon-payload.ts';
import { move, putObservation, scheduleHead } from './lanes.ts';
import type { Context } from './ports.ts';
import type { Transaction } from './tables.ts';

/** What a person decides about an operation: send it again, give it up, or say that it was applied. */
export type Decision = 'retry' | 'drop' | 'confirm';

export type DecideOperation = { operationId: string; decision: Decision; actor: string };

/** Carries out a person's decision about an operation, and puts it on record (sync design, section 1). */
export function decideOperation(
  transaction: Transaction,
  { operationId, decision, actor }: DecideOperation,
  context: Context,
): Result<Operation> {
  const operation = transaction.operations.get(operationId);
  if (operation === null) return refuse('operation_not_found', 'There is no such operation.');
  const event = eventOf(decision, context.now);
  if (nextProgress(operation.progress, event) === null) {
    return refuse(
      'operation_not_open',
      `The operation is ${operation.progress.state}: it takes no ${decision}.`,
    );
  }
  const lane = laneOf[operation.kind];
  // Whatever stood at the front of the lane stands behind a retried one now.
  const head = transaction.operations.head(operation.subject, lane);
  if (head !== null) transaction.operations.put({ ...head, nextAt: null, outage: false });
  const decided = move(transaction, operation, event);
  // What may still be on its way is not overtaken, whoever wishes it.
  const isFenced = operation.progress.state === 'uncertain' && operation.nextAt !== null;
  const at = isFenced ? Math.max(operation.nextAt ?? 0, context.steady) : context.steady;
  scheduleHead(transaction, operation.subject, lane, { at });
  followUp(transaction, decided, decision);
  audit(
    transaction,
    { actor, act: `outbox.${decision}`, subject: operationId, detail: detailOf(operation) },
    context,
  );
  return done(transaction.operations.get(operationId) ?? decided);
}

function eventOf(decision: Decision, at: number): OperationEvent {
  return decision === 'retry' ? { type: 'retry' } : { type: decision, at };
}

function detailOf({ kind, progress, attempts }: Operation): string {
  return `${kind}, was ${progress.state} after ${attempts} attempts`;
}

/** What callers see follows the decision. */
function followUp(transaction: Transaction, operation: Operation, decision: Decision): void {
  const observation = transaction.observations.get(operation.subject);
  if (observation !== null) putObservation(transaction, observation);
  if (operation.kind !== 'create_coupon') return;
  const coupon = provisionalCoupon(operation);
  if (decision === 'retry') transaction.mirror.put({ coupon, confirmedAt: null });
  else transaction.mirror.remove(coupon.id);
}
