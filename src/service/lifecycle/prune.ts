import { done, type Result } from '../../domain/problem.ts';
import { idempotencyKeptMs } from '../access/idempotency.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';

const finishedKeptMs = 7 * 24 * 3_600_000;

/** Removes finished operations after 7 days, and stored answers once they are no longer promised. */
export function prune(transaction: Transaction, _: Record<string, never>, { now }: Context): Result<null> {
  transaction.operations.prune(now - finishedKeptMs);
  transaction.idempotency.prune(now - idempotencyKeptMs);
  return done(null);
}
