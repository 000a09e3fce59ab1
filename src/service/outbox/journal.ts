import type { Operation } from '../../domain/outbox/operation.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { syncRetentionMs, type Reach } from '../../domain/sync/push.ts';
import { dayMs } from '../../domain/time.ts';
import type { Context } from '../ports.ts';
import type { Reader, Transaction } from '../tables.ts';
import { wasRenumbered } from './agent-id.ts';
import { protocolOf } from './protocol.ts';
import type { LostOperations, Push } from './tables.ts';

/*
 * Finished operations. An upstream that was restored may have lost pushes that it has answered, so the operations of
 * pushes are kept for longer, and are sent again (src/sync/README.md, Between Latchkeys). What can no longer be sent
 * again is counted and reported.
 */

export const noPush: Push = { seq: 0, isAnswered: true, body: null, epoch: '' };

/** The last push of a product that was answered. */
export function answeredSeq({ pushes }: Pick<Reader, 'pushes'>, productId: string): number {
  const { seq, isAnswered } = pushes.get(productId) ?? noPush;
  return isAnswered ? seq : seq - 1;
}

/**
 * Whether the upstream was restored and may have lost operations, although it expects the next number. `before`: the epoch
 * of the last answer.
 */
export function mayHaveLost(
  transaction: Pick<Reader, 'settings'>,
  { before, epoch }: { before: string; epoch: string },
): boolean {
  return before !== '' && before !== epoch && wasRenumbered(transaction);
}

/** How long finished operations are kept in the plain protocol, which sends none of them again. */
const plainKeptMs = 7 * dayMs;
export const defaultKeptMs: number = syncRetentionMs;
const defaultMaxFinished = 1_000_000;
/** For how long a loss is shown, and how long the counts of removed operations are kept. */
const lossShownMs = 30 * dayMs;
const countsKeptMs = 400 * dayMs;

/**
 * An upstream that has not lost an operation knows its id for 30 days, and does not count it twice. A day less, because
 * the two clocks may differ.
 */
const resendableMs = syncRetentionMs - dayMs;

type PruneOperations = {
  /** Epoch ms (domain/time.ts). */
  removalTime: number;
  /** How many rows are removed or dated. */
  limit: number;
  /** For how long operations of pushes are kept. */
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
  { removalTime, limit, keptMs = defaultKeptMs, maxFinished = defaultMaxFinished }: PruneOperations,
  { now }: Pick<Context, 'now'>,
): Result<{ removed: number }> {
  const { operations, pushes } = transaction;
  const dated = operations.clampToNow(now, limit);
  const isPushing = protocolOf(transaction) === 'latchkey';
  const old = operations.prune(removalTime - (isPushing ? keptMs : plainKeptMs), limit);
  const { delivered, inferred, cancelled, dropped } = operations.depth();
  const excess = Math.min(limit - old.length, delivered + inferred + cancelled + dropped - maxFinished);
  const removed = excess <= 0 ? old : [...old, ...operations.prune(Number.MAX_SAFE_INTEGER, excess)];
  if (isPushing) {
    for (const { productId, pushSeq, finishedAt: at } of removed)
      if (pushSeq !== null) pushes.addPruned(productId, { day: dayOf(at), lastSeq: pushSeq, operations: 1 });
  }
  pushes.forgetLosses({ foundBefore: now - lossShownMs, prunedBefore: now - countsKeptMs });
  return done({ removed: dated + removed.length });
}

function dayOf(at: number): number {
  return at - (at % dayMs);
}

/** `delivered`: operations that the upstream may have lost. `last`: the number of the last push that it knows. */
type Later = { productId: Reach; last: number; delivered: readonly Operation[]; isRestored: boolean };

/** Splits operations into those that are sent again, and those that are too old. What is lost is recorded. */
export function splitByAge(
  { pushes, operations }: Transaction,
  { productId, last, delivered, isRestored }: Later,
  { now }: Pick<Context, 'now'>,
): { sendable: Operation[]; lost: LostOperations | null } {
  const sendable = delivered.filter((operation) => isResendable(operation, now));
  const tooOld = delivered.filter((operation) => !isResendable(operation, now));
  const after = new Set(operations.pushedAfter(productId, last).map(({ id }) => id));
  const gone = tooOld.filter(({ id }) => after.has(id));
  // Their pushes may get other operations.
  operations.addToPush(gone, null);
  const pruned = pushes.takePruned(productId, last);
  // An upstream that has only forgotten this agent has lost nothing.
  if (!isRestored) return { sendable, lost: null };
  const days = gone.map((operation) => dayOf(finishedAt(operation)));
  const all = [...pruned, ...days.map((day) => ({ day, operations: 1 }))];
  if (all.length === 0) return { sendable, lost: null };
  const lost = {
    operations: all.reduce((sum, each) => sum + each.operations, 0),
    firstAt: Math.min(...all.map(({ day }) => day)),
    lastAt: Math.max(...all.map(({ day }) => day)),
    foundAt: now,
  };
  pushes.addLost(productId, lost);
  return { sendable, lost };
}

export function isDelivered({ progress: { state } }: Operation): boolean {
  return state === 'delivered' || state === 'inferred';
}

/** Whether a delivered operation may be sent again at an instant (epoch ms): the upstream surely knows its id if it has it. */
export function isResendable(operation: Operation, now: number): boolean {
  return isDelivered(operation) && finishedAt(operation) >= now - resendableMs;
}

function finishedAt({ progress }: Operation): number {
  return 'finishedAt' in progress ? progress.finishedAt : Infinity;
}
