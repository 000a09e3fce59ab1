import { done, type Result } from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';

const finishedKeptMs = 7 * 24 * 3_600_000;

/**
 * Removes at most so many operations that have been finished for 7 days. Operations that a jump of the clock, which was
 * taken back since, has dated in the future are dated to now: otherwise they would stay for as long as the jump was.
 * Returns how many operations were removed or dated. `removalTime`: epoch ms (domain/clock.ts).
 */
export function pruneOperations(
  transaction: Transaction,
  { removalTime, limit }: { removalTime: number; limit: number },
  { now }: Pick<Context, 'now'>,
): Result<{ removed: number }> {
  const { operations } = transaction;
  const dated = operations.bringBack(now, limit);
  return done({ removed: dated + operations.prune(removalTime - finishedKeptMs, limit) });
}
