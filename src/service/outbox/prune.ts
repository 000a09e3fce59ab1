import { done, type Result } from '../../domain/problem/problem.ts';
import { agentRetentionMs } from '../../domain/latchkey.ts';
import { dayMs } from '../../domain/time.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { isLatchkey } from './upstream/identity.ts';

/** How long finished operations are kept if the upstream is no Latchkey: they are never sent again. */
const plainKeptMs = 7 * dayMs;
const defaultMaxFinished = 1_000_000;

type PruneOperations = {
  /** Epoch ms (domain/clock.ts). */
  removalTime: number;
  /** How many rows are removed or dated. */
  limit: number;
  /** For how long operations are kept that a restored Latchkey gets again. */
  keptMs?: number;
  /** The most finished operations that are kept. */
  maxFinished?: number;
};

/**
 * Removes operations that finished long ago. A jump of the clock that was taken back may have dated operations in the
 * future: those are dated to now, or they would stay for as long as the jump was. Returns how many were removed or dated.
 */
export function pruneOperations(
  transaction: Transaction,
  { removalTime, limit, keptMs = agentRetentionMs, maxFinished = defaultMaxFinished }: PruneOperations,
  { now }: Pick<Context, 'now'>,
): Result<{ removed: number }> {
  const { operations } = transaction;
  const dated = operations.clampToNow(now, limit);
  const old = operations.prune(removalTime - (isLatchkey(transaction) ? keptMs : plainKeptMs), limit);
  const { delivered, inferred, cancelled, dropped } = operations.depth();
  const excess = Math.min(limit - old, delivered + inferred + cancelled + dropped - maxFinished);
  const removed = excess <= 0 ? old : old + operations.prune(Number.MAX_SAFE_INTEGER, excess);
  return done({ removed: dated + removed });
}
