import { done, type Result } from '../../domain/problem/problem.ts';
import type { Transaction } from '../tables.ts';

const finishedKeptMs = 7 * 24 * 3_600_000;

/**
 * Removes at most so many operations that have been finished for 7 days; gives how many there were. `removalTime`:
 * epoch ms (domain/clock.ts).
 */
export function pruneOperations(
  transaction: Transaction,
  { removalTime, limit }: { removalTime: number; limit: number },
): Result<{ removed: number }> {
  return done({ removed: transaction.operations.prune(removalTime - finishedKeptMs, limit) });
}
