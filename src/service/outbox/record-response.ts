import type { License } from '../../domain/license.ts';
import {
  isCountUncertain,
  readResultOf,
  refreshAtAfterChange,
  type LicenseSnapshot,
} from '../../domain/agent/license-snapshot.ts';
import type { Operation, OperationState } from '../../domain/outbox/operation.ts';
import { effectOnUses, usesAfter } from '../../domain/outbox/uses.ts';
import { isOutage, type Applied, type NotApplied, type Outcome } from '../../domain/outbox/outcome.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { currentRun, isOfEarlierRun } from '../lifecycle/run-count.ts';
import { confirmTime } from '../lifecycle/time-mark.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { observeEpoch } from './upstream/change.ts';
import { isOfOtherUpstream, isOlderThanKnown } from './upstream/former.ts';
import { isKeyed } from './upstream/identity.ts';
import {
  awaitNextAttempt,
  endSuperseded,
  operationInFlight,
  recordOutcome,
  refuseOperation,
  reopenOperations,
} from './after-response.ts';
import { recordCarriedOut, recordRefusal } from './latchkey-response.ts';
import { withKnown } from './record-read.ts';
import type { UnexpectedCount } from './reconcile.ts';
import {
  nextReconcileAt,
  queueOfOperation,
  move,
  putSnapshot,
  scheduleHead,
  type SyncPolicy,
  waitAfterFailure,
} from './queue.ts';

type RecordResponse = {
  operationId: string;
  outcome: Outcome<License>;
  /** The other queue of the key had a request under way too: use only this queue's member of the response. */
  overlapped: boolean;
  policy: SyncPolicy;
};

/** The state of the operation after the response, and why it is not delivered. */
export type RecordedResponse = Pick<Operation, 'lastError'> & {
  state: OperationState;
  unexpected: UnexpectedCount | null;
};

/** Records the response to an operation (src/sync/README.md, Operation states). */
export function recordResponse(
  transaction: Transaction,
  command: RecordResponse,
  context: Context,
): Result<RecordedResponse> {
  const lookup = operationInFlight(transaction, command.operationId);
  if (!lookup.ok) return lookup;
  const operation = lookup.value;
  const { outcome, policy } = command;
  const isSentUnderId = isKeyed(operation);
  const counted: { unexpected: UnexpectedCount | null } = { unexpected: null };
  const after = recordOutcome(
    transaction,
    operation,
    {
      outcome,
      policy,
      applied(answer) {
        if (isSentUnderId) recordCarriedOut(transaction, operation, { outcome: answer, policy }, context);
        else
          counted.unexpected = recordApplied(
            transaction,
            operation,
            { ...command, outcome: answer },
            context,
          );
      },
      notApplied(answer) {
        const record = isSentUnderId ? recordRefusal : recordNotApplied;
        record(transaction, operation, { outcome: answer, policy }, context);
      },
    },
    context,
  );
  return done({ ...counted, state: after.progress.state, lastError: after.lastError });
}

/** Returns a count that is not explained. */
function recordApplied(
  transaction: Transaction,
  operation: Operation,
  { outcome, overlapped, policy }: RecordResponse & { outcome: Applied<License> },
  context: Context,
): UnexpectedCount | null {
  const { now, monotonic } = context;
  const confirmedAt = confirmTime(transaction, outcome.confirmedAt, context);
  observeEpoch(transaction, outcome, context);
  // A disable sets a value: after a response it does not matter how often it arrived.
  const certain = operation.kind === 'disable';
  const delivered = move(transaction, operation, { type: 'applied', certain, at: now });
  const queue = queueOfOperation(operation);
  if (queue === 'state') endSuperseded(transaction, delivered, context);
  const next = scheduleHead(transaction, operation.subject, queue, { at: monotonic });
  const snapshot = transaction.snapshots.get(operation.subject);
  if (snapshot === null) return null;
  const value = withKnown(outcome, snapshot);
  const wasFirst = (next === null || next.seq > operation.seq) && !snapshot.gone;
  if (snapshot.gone) reopenOperations(transaction, operation.subject, context);
  const isCounted = queue === 'counter' || mayCountFrom(transaction, snapshot, operation, overlapped);
  const isExpected = isCounted && !isOfOtherUpstream(transaction, snapshot);
  const unexpected = isExpected ? unexpectedCount(expectedCount(operation, snapshot), value) : null;
  const at = { ...context, fraction: context.random.fraction(), readResult: readResultOf(outcome) };
  // Of two overlapping responses either may be the newer. It may disable the key; a read then decides.
  const isStateUnsure = overlapped && queue === 'counter' && value.enabled !== snapshot.license.enabled;
  // A change of the count shows nothing newer about the state than the upstream knew before.
  const isOlder = outcome.shows === 'uses' || isOlderThanKnown(transaction, snapshot, confirmedAt);
  const { enabled } = isOlder && queue === 'counter' ? snapshot.license : value;
  const changed = {
    ...snapshot,
    license: {
      // Members that only a response to a read has are kept.
      ...snapshot.license,
      ...value,
      licenseKey: operation.subject,
      uses: isCounted ? value.uses : snapshot.license.uses,
      enabled: !isStateUnsure && enabled,
    },
    confirmedAt: isOlder ? snapshot.confirmedAt : confirmedAt,
    run: isCounted ? currentRun(transaction) : snapshot.run,
    manyWriters: snapshot.manyWriters || unexpected !== null,
    missingSince: null,
    readFirst: false,
    gone: false,
    refreshAt: isStateUnsure ? monotonic : refreshAtAfterChange(snapshot, policy, at),
  };
  const before = wasFirst ? { ...snapshot, first: effectOnUses(operation) } : null;
  putSnapshot(transaction, changed, before);
  return unexpected;
}

/**
 * Whether the count in the response to a change of state may be a base: the counter queue is empty, and this run has
 * read the key already.
 */
function mayCountFrom(
  transaction: Transaction,
  snapshot: LicenseSnapshot,
  { subject, progress }: Operation,
  overlapped: boolean,
): boolean {
  const { operations } = transaction;
  const sentAt = progress.state === 'in_flight' ? progress.sentAt : 0;
  const isCounterAtRest =
    operations.tail(subject, 'counter') === null &&
    nextReconcileAt(transaction, { subject, queue: 'counter', asDisable: false }, sentAt) === null;
  return isCounterAtRest && !overlapped && !isOfEarlierRun(transaction, snapshot);
}

/** The count after an operation if nothing else changed it; null if unknown. */
function expectedCount(operation: Operation, snapshot: LicenseSnapshot): number | null {
  const { progress } = operation;
  if (queueOfOperation(operation) !== 'counter') {
    return isCountUncertain(snapshot) ? null : snapshot.license.uses;
  }
  if (progress.state !== 'in_flight' || progress.baseUses === null) return null;
  return usesAfter(progress.baseUses, operation);
}

function unexpectedCount(expected: number | null, { uses }: License): UnexpectedCount | null {
  return expected === null || uses === expected ? null : { expected, got: uses };
}

function recordNotApplied(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: { outcome: NotApplied; policy: SyncPolicy },
  context: Context,
): void {
  if (outcome.reason === 'refused') {
    refuseOperation(transaction, operation, { cause: 'refused', detail: outcome.detail });
    scheduleHead(transaction, operation.subject, queueOfOperation(operation), { at: context.monotonic });
    const { license: said } = outcome;
    updateSnapshot(
      transaction,
      operation.subject,
      {
        // The refusal is newer than what the store has said of activations of the key.
        ...(said !== undefined && { confirmedAt: confirmTime(transaction, context.now, context) }),
        // A use beyond its limit: other programs have used the key, or the limit was changed.
        ...(said === undefined && operation.kind === 'usage' && { refreshAt: context.monotonic }),
      },
      said,
    );
    return;
  }
  const waiting = move(transaction, operation, { type: 'not_applied' });
  // A 404 to a change proves nothing about the key: only reads do, so the next step is a read.
  if (outcome.reason === 'missing') updateSnapshot(transaction, operation.subject, { readFirst: true });
  awaitNextAttempt(transaction, waiting, { outcome, policy }, context);
}

function updateSnapshot(
  transaction: Transaction,
  licenseKey: string,
  change: Partial<Pick<LicenseSnapshot, 'confirmedAt' | 'readFirst' | 'refreshAt'>>,
  said: Partial<NonNullable<NotApplied['license']>> = {},
): void {
  const snapshot = transaction.snapshots.get(licenseKey);
  if (snapshot === null) return;
  putSnapshot(transaction, { ...snapshot, ...change, license: { ...snapshot.license, ...said } });
}

type Postpone = {
  operationId: string;
  outcome: Exclude<Outcome<never>, Applied<never>>;
  policy: SyncPolicy;
};

/** Makes an operation wait after a read that brought nothing. */
export function postpone(
  transaction: Transaction,
  { operationId, outcome, policy }: Postpone,
  context: Context,
): Result<null> {
  const operation = transaction.operations.get(operationId);
  if (operation === null) return done(null);
  const wait = waitAfterFailure(operation, { ...outcome, outage: isOutage(outcome) }, policy, context);
  scheduleHead(transaction, operation.subject, queueOfOperation(operation), wait);
  return done(null);
}
