import { isHeld, type Operation } from '../../../domain/outbox/operation.ts';
import { isOutage, type Ambiguous, type NotApplied } from '../../../domain/outbox/outcome.ts';
import { refuse, done, type Result } from '../../../domain/problem/problem.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import { holdIfElsewhere } from '../control/upstream-binding.ts';
import { loseAnswer } from '../settlement/fence.ts';
import { laneOfOperation, scheduleHead, waitAfterFailure } from '../lane.ts';
import type { SyncPolicy } from '../policy.ts';

/** The operation to which an answer belongs; what is not in flight has no answer to record. */
export function operationInFlight({ operations }: Transaction, operationId: string): Result<Operation> {
  const operation = operations.get(operationId);
  if (operation === null || operation.progress.state !== 'in_flight') {
    return refuse('operation_not_open', 'The operation is not in flight.');
  }
  return done(operation);
}

/** Lets an operation that was not applied, and is pending again, wait for its next attempt. */
export function awaitNextAttempt(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: { outcome: NotApplied; policy: SyncPolicy },
  context: Context,
): void {
  // An earlier attempt of it may have been applied where the upstream was another one.
  if (isHeld(holdIfElsewhere(transaction, operation, context))) return;
  const failure = { ...outcome, outage: isOutage(outcome) };
  const wait = waitAfterFailure(operation, failure, policy, context);
  scheduleHead(transaction, operation.subject, laneOfOperation(operation), wait);
}

/** Records that nobody can tell whether an operation was applied. */
export function recordAmbiguous(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: { outcome: Ambiguous; policy: SyncPolicy },
  context: Context,
): void {
  const wait = waitAfterFailure(operation, { ...outcome, outage: true }, policy, context);
  const lost = loseAnswer(transaction, operation, policy, context);
  if (isHeld(lost)) return;
  // What is read back waits for its fence and for what the upstream asked for, not for a backoff.
  const at = lost.progress.state === 'pending' ? wait.at : context.steady + (outcome.retryAfterMs ?? 0);
  scheduleHead(transaction, operation.subject, laneOfOperation(operation), { ...wait, at });
}
