import { done, type Result } from '../../domain/problem.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';

const finishedKeptMs = 7 * 24 * 3_600_000;

/** Removes operations that have been finished for 7 days. */
export function pruneOperations(
  transaction: Transaction,
  _: Record<string, never>,
  { now }: Context,
): Result<null> {
  transaction.operations.prune(now - finishedKeptMs);
  return done(null);
}
