import { nextStep, type Step } from '../../domain/outbox/delivery.ts';
import { type QueueName, type Operation, advance, traced } from '../../domain/outbox/operation.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { currentRun } from '../lifecycle/current-run.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { nextReconcileAt, scheduleHead } from './queue.ts';
import { boundUpstream } from './upstream-state.ts';

type PlanStep = {
  subject: string;
  queue: QueueName;
  /** The key was read for this attempt. */
  justRead: boolean;
};

/**
 * Decides what the head of a queue needs next. An operation to send is committed as `in_flight` here, before the first
 * byte leaves.
 */
export function planStep(
  transaction: Transaction,
  { subject, queue, justRead }: PlanStep,
  { elapsed }: Context,
): Result<Step> {
  const { operations, snapshots } = transaction;
  const head = operations.head(subject, queue);
  if (head === null || head.nextAt === null || head.nextAt > elapsed) return done({ step: 'none' });
  const step = nextStep({
    head,
    snapshot: snapshots.get(subject),
    run: currentRun(transaction),
    now: elapsed,
    reconcileAt: nextReconcileAt(
      transaction,
      { subject, queue, asDisable: head.kind === 'disable' },
      elapsed,
    ),
    // One read reconciles all uncertain counts; a change of state is reconciled when it is the head.
    hasUncertain: queue === 'counter' && operations.uncertain(subject, queue).length > 0,
    justRead,
  });
  if (step.step === 'wait') {
    scheduleHead(transaction, subject, queue, { ...head, at: step.until });
    return done({ step: 'none' });
  }
  if (step.step !== 'send') return done(step);
  const { baseUses } = step;
  const operation = send(transaction, head, { baseUses, at: elapsed });
  return done({ step: 'send', operation, baseUses });
}

/** Marks an operation as in flight to the current upstream. Its request may leave after the commit. */
export function send(
  transaction: Transaction,
  operation: Operation,
  { baseUses, at }: { baseUses: number | null; at: number },
): Operation {
  const advanced = advance(operation, { type: 'send', baseUses, at });
  const sent = { ...advanced, upstream: boundUpstream(transaction), nextAt: null };
  transaction.operations.put(sent);
  transaction.trace.add(traced('sent', sent));
  return sent;
}
