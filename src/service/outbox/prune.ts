import { done, type Result } from '../../domain/problem.ts';
import type { Transaction } from '../tables.ts';

const finishedKeptMs = 7 * 24 * 3_600_000;

/**
 * Removes operations that have been finished for 7 days. `believedNow`: epoch ms that have certainly been
 * reached (`Clock.mark`).
 */
export function pruneOperations(
  transaction: Transaction,
  { believedNow }: { believedNow: number },
): Result<null> {
  transaction.operations.prune(believedNow - finishedKeptMs);
  return done(null);
}
