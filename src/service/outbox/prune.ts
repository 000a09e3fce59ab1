import { done, type Result } from '../../domain/problem/problem.ts';
import type { Transaction } from '../tables.ts';

const finishedKeptMs = 7 * 24 * 3_600_000;

/**
 * Removes at most so many operations that have been finished for 7 days; gives how many there were. `believedNow`:
 * epoch ms that have certainly been reached (`Clock.mark`).
 */
export function pruneOperations(
  transaction: Transaction,
  { believedNow, limit }: { believedNow: number; limit: number },
): Result<{ removed: number }> {
  return done({ removed: transaction.operations.prune(believedNow - finishedKeptMs, limit) });
}
