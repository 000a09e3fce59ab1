import { noRun } from '../../domain/agent/license-snapshot.ts';
import {
  eventOfDecision,
  type Decision,
  explain,
  type Blocker,
  type Explanation,
} from '../../domain/outbox/explanation.ts';
import {
  mayHaveBeenApplied,
  isHeld,
  isUnanswered,
  isLicenseKind,
  queueOf,
  type Operation,
  type OperationState,
  nextProgress,
} from '../../domain/outbox/operation.ts';
import { usesAfter } from '../../domain/outbox/uses.ts';
import { done, failWith, type Result } from '../../domain/problem/problem.ts';
import { endWait, move, putSnapshot, scheduleHead, nextReconcileAt } from './queue.ts';
import type { Context } from '../ports.ts';
import type { Transaction, Reader } from '../tables.ts';
import { isLatchkey, isPlain } from './upstream/identity.ts';
import { dropRedemption } from './coupon/redemption.ts';
import { provisionalCoupon } from '../../domain/outbox/coupon-payload.ts';
import { adoptOnceListed } from './coupon/provisional.ts';

type DecideOperation = { operationId: string; decision: Decision };

/** The operation after the decision, and its state before. */
type DecidedOperation = { operation: Operation; was: OperationState };

const pastOf: Readonly<Record<Decision, string>> = {
  retry: 'retried',
  drop: 'dropped',
  confirm: 'confirmed',
};

/** Carries out a person's decision about an operation (src/sync/README.md, Operation states). */
export function decideOperation(
  transaction: Transaction,
  { operationId, decision }: DecideOperation,
  context: Context,
): Result<DecidedOperation> {
  const operation = transaction.operations.get(operationId);
  if (operation === null) return failWith('operation_not_found', 'There is no such operation.');
  const event = eventOfDecision(operation, decision, context.now);
  if (nextProgress(operation.progress, event) === null) {
    return failWith(
      'operation_not_open',
      `The change is ${operation.progress.state}, so it cannot be ${pastOf[decision]}.`,
    );
  }
  const queue = queueOf[operation.kind];
  if (queue === 'order' && decision === 'retry' && isPlain(transaction)) {
    const detail = 'The upstream counts no redemptions: drop or confirm it.';
    return failWith('operation_not_open', detail);
  }
  const head = endWait(transaction, operation.subject, queue);
  const decided = move(transaction, asDecided(operation, decision), event);
  if (head?.progress.state !== 'in_flight') {
    scheduleHead(transaction, operation.subject, queue, { at: context.monotonic });
  }
  if (decision === 'confirm') countConfirmed(transaction, operation);
  followUp(transaction, operation, decision);
  const after = transaction.operations.get(operationId) ?? decided;
  return done({ operation: after, was: operation.progress.state });
}

function asDecided(operation: Operation, decision: Decision): Operation {
  if (decision === 'retry') return asRetried(operation);
  // A restored upstream does not get it again: it never said that it has carried it out.
  return decision === 'confirm' ? { ...operation, upstream: null } : operation;
}

/** The person has seen the current state of the key, and accepts that the operation may be applied twice. */
function asRetried(operation: Operation): Operation {
  return {
    ...operation,
    failures: 0,
    seenEnabled: null,
    seenRevision: null,
    lastError: mayHaveBeenApplied(operation) ? riskOf(operation) : operation.lastError,
  };
}

function riskOf({ kind }: Operation): string {
  const doubt = 'retried: an earlier attempt may have been applied';
  if (kind === 'create_coupon') return `${doubt}, so that it is looked for upstream before it is sent again`;
  return isLicenseKind(kind) ? `${doubt}, so that it may be applied twice` : doubt;
}

/**
 * If a person says that a counter operation was applied, the confirmed count and the bases of uncertain operations
 * move along. Otherwise the next response would look like another writer. A held operation was read already: the count
 * contains it.
 */
function countConfirmed({ snapshots, operations }: Transaction, operation: Operation): void {
  const { kind, subject } = operation;
  if (queueOf[kind] !== 'counter' || isHeld(operation)) return;
  for (const other of operations.uncertain(subject, 'counter')) {
    if (other.progress.state !== 'uncertain' || other.progress.baseUses === null) continue;
    const baseUses = usesAfter(other.progress.baseUses, operation);
    operations.put({ ...other, progress: { ...other.progress, baseUses } });
  }
  const snapshot = snapshots.get(subject);
  if (snapshot === null) return;
  const { license } = snapshot;
  snapshots.put({ ...snapshot, license: { ...license, uses: usesAfter(license.uses, operation) } });
}

/** Updates what callers see. */
function followUp(transaction: Transaction, operation: Operation, decision: Decision): void {
  const isLicense = isLicenseKind(operation.kind);
  const snapshot = isLicense ? transaction.snapshots.get(operation.subject) : null;
  if (snapshot !== null) {
    const isDoubtful = makesCountDoubtful(operation, decision);
    putSnapshot(transaction, isDoubtful ? { ...snapshot, run: noRun } : snapshot);
    // What the upstream last said may or may not contain the operation.
    if (isUnanswered(operation)) transaction.snapshots.setFollowed(operation.subject, false);
  }
  if (operation.kind === 'redeem' && decision === 'drop') dropRedemption(transaction, operation);
  if (operation.kind !== 'create_coupon') return;
  const coupon = provisionalCoupon(operation);
  if (decision === 'retry') transaction.mirror.put({ coupon, confirmedAt: null });
  else if (decision === 'confirm') adoptOnceListed(transaction, coupon);
  else transaction.mirror.remove(coupon.id);
}

/**
 * Whether the count may or may not contain the operation, so that it must be read before the next send. If a held
 * operation is confirmed, a read has shown it already.
 */
function makesCountDoubtful(operation: Operation, decision: Decision): boolean {
  const isShown = isHeld(operation) && decision === 'confirm';
  return queueOf[operation.kind] === 'counter' && mayHaveBeenApplied(operation) && !isShown;
}

/** Explains an operation to a person; `monotonic`: monotonic ms (`Clock.monotonic`). */
export function explainOperation(
  reader: Reader,
  operation: Operation,
  { blocker, monotonic }: { blocker: Blocker | null; monotonic: number },
): Explanation {
  const { subject, kind } = operation;
  const queue = queueOf[kind];
  const seen = isLicenseKind(kind) ? reader.snapshots.get(subject) : null;
  return explain(operation, {
    isLatchkey: isLatchkey(reader),
    now: monotonic,
    reconcileAt: nextReconcileAt(reader, { subject, queue, asDisable: kind === 'disable' }, monotonic),
    isHead: reader.operations.head(subject, queue)?.id === operation.id,
    blocker,
    shown: seen && { uses: seen.license.uses, enabled: seen.license.enabled, at: seen.confirmedAt },
  });
}
