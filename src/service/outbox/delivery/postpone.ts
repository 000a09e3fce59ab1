import { isOutage, type Applied, type Outcome } from '../../../domain/outbox/outcome.ts';
import { done, type Result } from '../../../domain/problem/problem.ts';
import { laneOfOperation, scheduleHead, waitAfterFailure } from '../lane.ts';
import type { Context } from '../../ports.ts';
import type { SyncPolicy } from '../policy.ts';
import type { Transaction } from '../../tables.ts';

export type Postpone = {
  operationId: string;
  outcome: Exclude<Outcome<never>, Applied<never>>;
  policy: SyncPolicy;
};

/** Lets an operation wait after a read that it needed brought nothing. */
export function postpone(
  transaction: Transaction,
  { operationId, outcome, policy }: Postpone,
  context: Context,
): Result<null> {
  const operation = transaction.operations.get(operationId);
  if (operation === null) return done(null);
  const wait = waitAfterFailure(operation, { ...outcome, outage: isOutage(outcome) }, policy, context);
  scheduleHead(transaction, operation.subject, laneOfOperation(operation), wait);
  return done(null);
}
