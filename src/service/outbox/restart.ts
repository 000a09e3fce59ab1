import { isHeld, queueOf, type QueueName, advance } from '../../domain/outbox/operation.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { scheduleHead, putSnapshot } from './queue.ts';
import { loseResponse } from './record-answer.ts';
import { renewUnknownHistory, beginUnknownHistory } from './sync-marks.ts';

/**
 * While the process was stopped, the wall clock may have been changed, so the elapsed time is unknown. At a start, each
 * reconcile delay that had not certainly passed at `reached` (monotonic ms) starts again, as does the delay of each
 * uncertain operation.
 */
export function renewReconcileDelays(
  transaction: Transaction,
  { reached, reconcileAfterMs }: { reached: number; reconcileAfterMs: number },
  { monotonic }: Context,
): void {
  const { operations } = transaction;
  const reconcileAt = monotonic + reconcileAfterMs;
  operations.extendReconcileDelays(reached, reconcileAt);
  renewUnknownHistory(transaction, { reached, until: reconcileAt });
  const queues = new Map<string, { subject: string; queue: QueueName }>();
  for (const operation of operations.withState('uncertain')) {
    if (!isHeld(operation)) {
      operations.put({ ...operation, reconcileAt });
      const { subject, kind } = operation;
      const queue = queueOf[kind];
      queues.set(`${subject}\n${queue}`, { subject, queue });
    }
  }
  for (const { subject, queue } of queues.values()) {
    const head = operations.head(subject, queue);
    scheduleHead(transaction, subject, queue, {
      at: Math.max(monotonic, head?.nextAt ?? monotonic),
      failures: head?.failures ?? 0,
      outage: head?.outage ?? false,
    });
  }
}

/** Operations in flight when the process ended may have been applied. */
export function makeInFlightUncertain(
  transaction: Transaction,
  policy: { reconcileAfterMs: number },
  context: Context,
): void {
  const lastError = 'the process ended while this was in flight';
  for (const operation of transaction.operations.withState('in_flight')) {
    const lost = loseResponse(transaction, { ...operation, lastError }, policy, context);
    scheduleHead(transaction, lost.subject, queueOf[lost.kind], { at: context.monotonic });
  }
}

/**
 * After a restore or a copy, the original may have delivered what this store still holds. Each unfinished operation is
 * read back against the last snapshot, and ends inferred at best. Requests of the original are waited for.
 * (src/sync/README.md, Start, restore and copy)
 */
export function makeAllUncertain(transaction: Transaction): void {
  beginUnknownHistory(transaction);
  const { operations, snapshots } = transaction;
  const reopenedSubjects = new Set<string>();
  const lastError = 'this store was restored or copied: it may have been delivered before';
  // The uncertain operations come first: the others become uncertain in this loop.
  for (const state of ['uncertain', 'in_flight', 'pending', 'dead'] as const) {
    for (const operation of operations.withState(state)) {
      const baseUses = snapshots.get(operation.subject)?.license.uses ?? null;
      const questioned = advance(operation, { type: 'question', baseUses, lasting: true });
      if (questioned.progress.state === 'dead') continue;
      if (state === 'dead') reopenedSubjects.add(operation.subject);
      operations.put({
        ...questioned,
        nextAt: null,
        outage: false,
        lastError: operation.lastError ?? lastError,
      });
    }
  }
  for (const subject of reopenedSubjects) {
    const snapshot = snapshots.get(subject);
    if (snapshot !== null) putSnapshot(transaction, snapshot);
  }
}
