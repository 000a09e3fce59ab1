import { type Step, nextStep } from '../../domain/outbox/delivery.ts';
import { type QueueName, type Operation, advance } from '../../domain/outbox/operation.ts';
import { traced } from '../../domain/outbox/trace.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { currentRun } from '../lifecycle/run-count.ts';
import type { Context, Keyed } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { nextReconcileAt, scheduleHead } from './queue.ts';
import { boundUpstream, isLatchkey, keyedAs, knownRevision } from './upstream/identity.ts';
import { isResuming } from './upstream/lost-operations.ts';

/** `keyed`: of a change to a Latchkey. */
export type SendStep = { step: 'send'; operation: Operation; keyed?: Keyed };

export type PlannedStep = Exclude<Step, { step: 'send' }> | SendStep;

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
  { monotonic }: Context,
): Result<PlannedStep> {
  const { operations, snapshots } = transaction;
  const head = operations.head(subject, queue);
  if (head === null || head.nextAt === null || head.nextAt > monotonic) return done({ step: 'none' });
  // Another response may have begun the return of what a restored upstream has lost.
  if (isResuming(transaction)) return done({ step: 'none' });
  const step = nextStep({
    head,
    snapshot: snapshots.get(subject),
    run: currentRun(transaction),
    now: monotonic,
    reconcileAt: nextReconcileAt(
      transaction,
      { subject, queue, asDisable: head.kind === 'disable' },
      monotonic,
    ),
    // One read reconciles all uncertain counts; a change of state is reconciled when it is the head.
    hasUncertain: queue === 'counter' && operations.uncertain(subject, queue).length > 0,
    justRead,
    isLatchkey: isLatchkey(transaction),
  });
  if (step.step === 'wait') {
    scheduleHead(transaction, subject, queue, { ...head, at: step.until });
    return done({ step: 'none' });
  }
  if (step.step !== 'send') return done(step);
  const { baseUses } = step;
  const operation = send(transaction, withSeen(transaction, head), { baseUses, at: monotonic });
  // A request that leaves later must not name another history of the upstream.
  return done({ step: 'send', operation, ...keyedAs(transaction, operation) });
}

/** An enable that was recorded before the upstream had named a revision says that of the read before it is sent. */
function withSeen(transaction: Transaction, operation: Operation): Operation {
  const { kind, subject, seenEnabled, seenRevision } = operation;
  if (kind !== 'enable' || seenRevision !== null || seenEnabled === null) return operation;
  return { ...operation, seenRevision: knownRevision(transaction, transaction.snapshots.get(subject)) };
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
