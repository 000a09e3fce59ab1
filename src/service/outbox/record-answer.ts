import { countAfter, type License } from '../../domain/license.ts';
import {
  isCountInQuestion,
  readAsOf,
  refreshAtAfterChange,
  type LicenseSnapshot,
} from '../../domain/agent/license-snapshot.ts';
import {
  type Operation,
  type OperationState,
  isHeld,
  mayHaveBeenApplied,
  type DeathCause,
} from '../../domain/outbox/operation.ts';
import {
  type Outcome,
  isOutage,
  type Ambiguous,
  type NotApplied,
  type Applied,
} from '../../domain/outbox/outcome.ts';
import { done, type Result, refuse } from '../../domain/problem/problem.ts';
import { currentRun, isOfEarlierRun } from '../lifecycle/current-run.ts';
import { confirmTime } from '../lifecycle/clock-mark.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { isOfOtherUpstream, observeInstance, holdIfElsewhere } from './upstream-state.ts';
import {
  nextReconcileAt,
  queueOfOperation,
  move,
  putSnapshot,
  scheduleHead,
  type SyncPolicy,
  waitAfterFailure,
} from './queue.ts';

type RecordAnswer = {
  operationId: string;
  outcome: Outcome<License>;
  /** The key's other queue had a request under way too: only this queue's member of the answer counts. */
  overlapped: boolean;
  policy: SyncPolicy;
};

/** A count that moved otherwise than this agent's own operations say: another writer. */
export type UnexpectedCount = { expected: number; got: number };

/** Where an answer left its operation, and why it is not delivered. */
export type RecordedAnswer = Pick<Operation, 'lastError'> & {
  state: OperationState;
  unexpected: UnexpectedCount | null;
};

/** Records what became of an operation that was sent (src/sync/README.md, Operation states). */
export function recordAnswer(
  transaction: Transaction,
  command: RecordAnswer,
  context: Context,
): Result<RecordedAnswer> {
  const found = operationInFlight(transaction, command.operationId);
  if (!found.ok) return found;
  const operation = found.value;
  const { outcome } = command;
  switch (outcome.outcome) {
    case 'applied':
      return done(recordApplied(transaction, operation, { ...command, outcome }, context));
    case 'not_applied':
      recordNotApplied(transaction, operation, { ...command, outcome }, context);
      break;
    case 'ambiguous':
      recordAmbiguous(transaction, operation, { ...command, outcome }, context);
      break;
    default:
      outcome satisfies never;
  }
  return done(recorded(transaction.operations.get(operation.id) ?? operation, null));
}

function recorded({ progress, lastError }: Operation, unexpected: UnexpectedCount | null): RecordedAnswer {
  return { state: progress.state, lastError, unexpected };
}

type Answered<Kind extends Outcome<License>['outcome']> = RecordAnswer & {
  outcome: Extract<Outcome<License>, { outcome: Kind }>;
};

function recordApplied(
  transaction: Transaction,
  operation: Operation,
  { outcome, overlapped, policy }: Answered<'applied'>,
  context: Context,
): RecordedAnswer {
  const { now, elapsed } = context;
  confirmTime(transaction, outcome.confirmedAt);
  observeInstance(transaction, outcome.instance, context);
  // A disable sets a value: once it is answered, it does not matter how often it arrived.
  const certain = operation.kind === 'disable';
  const delivered = move(transaction, operation, { type: 'applied', certain, at: now });
  const queue = queueOfOperation(operation);
  if (queue === 'state') endSuperseded(transaction, delivered, context);
  const next = scheduleHead(transaction, operation.subject, queue, { at: elapsed });
  const snapshot = transaction.snapshots.get(operation.subject);
  if (snapshot === null) return recorded(delivered, null);
  const wasFirst = (next === null || next.seq > operation.seq) && !snapshot.gone;
  if (snapshot.gone) reopenOperations(transaction, operation.subject, context);
  const isCounted = queue === 'counter' || mayCountFrom(transaction, snapshot, operation, overlapped);
  const isExpected = isCounted && !isOfOtherUpstream(transaction, snapshot);
  const unexpected = isExpected ? unexpectedCount(expectedCount(operation, snapshot), outcome.value) : null;
  const at = { ...context, draw: context.random.draw(), readAs: readAsOf(outcome) };
  // Of two states that overlapped nobody can tell which is the newer: it can revoke a key, and a read tells.
  const isStateUnsure =
    overlapped && queue === 'counter' && outcome.value.enabled !== snapshot.license.enabled;
  const answered = {
    ...snapshot,
    license: {
      // What only an answer to a read tells stays.
      ...snapshot.license,
      ...outcome.value,
      licenseKey: operation.subject,
      uses: isCounted ? outcome.value.uses : snapshot.license.uses,
      enabled: !isStateUnsure && outcome.value.enabled,
    },
    confirmedAt: outcome.confirmedAt,
    run: isCounted ? currentRun(transaction) : snapshot.run,
    manyWriters: snapshot.manyWriters || unexpected !== null,
    missingSince: null,
    readFirst: false,
    gone: false,
    refreshAt: isStateUnsure ? elapsed : refreshAtAfterChange(snapshot, policy, at),
  };
  const before = wasFirst ? { ...snapshot, first: effectOf(operation) } : null;
  putSnapshot(transaction, answered, before);
  return recorded(delivered, unexpected);
}

function effectOf({ kind }: Operation): 1 | 0 | -1 {
  if (kind === 'usage') return 1;
  return kind === 'decrease' ? -1 : 0;
}

/**
 * Whether the count in a state's answer may be counted from: only one that can contain nothing of this
 * agent's counter, and does not stand in for the first read after a start, which has more to reconcile.
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

/** The count after an operation, as far as nobody else changed it; null: unknown. */
function expectedCount({ kind, progress }: Operation, snapshot: LicenseSnapshot): number | null {
  if (kind !== 'usage' && kind !== 'decrease') {
    return isCountInQuestion(snapshot) ? null : snapshot.license.uses;
  }
  if (progress.state !== 'in_flight' || progress.baseUses === null) return null;
  return countAfter(progress.baseUses, kind);
}

function unexpectedCount(expected: number | null, { uses }: License): UnexpectedCount | null {
  return expected === null || uses === expected ? null : { expected, got: uses };
}

function recordNotApplied(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: Answered<'not_applied'>,
  context: Context,
): void {
  if (outcome.reason === 'refused') {
    refuseOperation(transaction, operation, { cause: 'refused', detail: outcome.detail });
    scheduleHead(transaction, operation.subject, queueOfOperation(operation), { at: context.elapsed });
    updateSnapshot(transaction, operation.subject, {});
    return;
  }
  const waiting = move(transaction, operation, { type: 'not_applied' });
  // A 404 to a write proves nothing about the key: only reads do, so the next step is one.
  if (outcome.reason === 'missing') updateSnapshot(transaction, operation.subject, { readFirst: true });
  awaitNextAttempt(transaction, waiting, { outcome, policy }, context);
}

function updateSnapshot(
  transaction: Transaction,
  licenseKey: string,
  change: Partial<Pick<LicenseSnapshot, 'readFirst'>>,
): void {
  const snapshot = transaction.snapshots.get(licenseKey);
  if (snapshot !== null) putSnapshot(transaction, { ...snapshot, ...change });
}

/** The operation to which an answer belongs; what is not in flight has no answer to record. */
export function operationInFlight({ operations }: Transaction, operationId: string): Result<Operation> {
  const operation = operations.get(operationId);
  if (operation === null || operation.progress.state !== 'in_flight') {
    return refuse('operation_not_open', 'The operation is not in flight.');
  }
  return done(operation);
}

/** Lets an operation that was not applied, and is pending again, wait for its next attempt. */
export function awaitNextAttempt(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: { outcome: NotApplied; policy: SyncPolicy },
  context: Context,
): void {
  // An earlier attempt of it may have been applied where the upstream was another one.
  if (isHeld(holdIfElsewhere(transaction, operation, context))) return;
  const failure = { ...outcome, outage: isOutage(outcome) };
  const wait = waitAfterFailure(operation, failure, policy, context);
  scheduleHead(transaction, operation.subject, queueOfOperation(operation), wait);
}

/** Records that nobody can tell whether an operation was applied. */
export function recordAmbiguous(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: { outcome: Ambiguous; policy: SyncPolicy },
  context: Context,
): void {
  const wait = waitAfterFailure(operation, { ...outcome, outage: true }, policy, context);
  const lost = loseAnswer(transaction, operation, policy, context);
  if (isHeld(lost)) return;
  // What is read back waits for its reconcile delay and for what the upstream asked for, not for a backoff.
  const at = lost.progress.state === 'pending' ? wait.at : context.elapsed + (outcome.retryAfterMs ?? 0);
  scheduleHead(transaction, operation.subject, queueOfOperation(operation), { ...wait, at });
}

type Postpone = {
  operationId: string;
  outcome: Exclude<Outcome<never>, Applied<never>>;
  policy: SyncPolicy;
};

/** Lets an operation wait after a read that it needed brought nothing. */
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

/** Lets every queue that an outage had made wait go on: the upstream answers again. */
export function endOutage(
  transaction: Transaction,
  _: Record<string, never>,
  { elapsed }: Context,
): Result<null> {
  transaction.operations.endOutage(elapsed);
  return done(null);
}

/**
 * The upstream will never take this operation. It is dead, unless an earlier attempt may have been applied:
 * then it is held for a person, with both facts. (src/sync/README.md, Operation states)
 */
export function refuseOperation(
  transaction: Transaction,
  operation: Operation,
  { cause, detail }: { cause: DeathCause; detail: string },
): Operation {
  const lastError = mayHaveBeenApplied(operation)
    ? `${detail}; an earlier attempt of it may have been applied`
    : detail;
  return move(transaction, { ...operation, lastError }, { type: 'refused', cause });
}

/**
 * A change of the state was delivered: whatever became of those before it that are held, it matters no longer. Disables
 * that the upstream had refused hold the key until an enable is delivered.
 */
export function endSuperseded(
  transaction: Transaction,
  delivered: Operation,
  { now }: Pick<Context, 'now'>,
): void {
  const { operations } = transaction;
  const { subject, seq } = delivered;
  const refused = delivered.kind === 'enable' ? operations.dead(subject).filter(isDisable) : [];
  for (const operation of [...refused, ...operations.held(subject, 'state')]) {
    if (operation.seq < seq) move(transaction, operation, { type: 'superseded', at: now });
  }
}

function isDisable({ kind }: Operation): boolean {
  return kind === 'disable';
}

/** The upstream knows the key again: what had died because it was missing goes back to its queue, in its order. */
export function reopenOperations(
  transaction: Transaction,
  licenseKey: string,
  { elapsed }: Pick<Context, 'elapsed'>,
): void {
  const { operations } = transaction;
  const isMissing = ({ progress }: Operation): boolean =>
    progress.state === 'dead' && progress.cause === 'missing';
  const reopened = operations.dead(licenseKey).filter(isMissing);
  for (const queue of new Set(reopened.map(queueOfOperation))) {
    // One that a person has retried meanwhile stands behind those that come back.
    const head = operations.head(licenseKey, queue);
    if (head !== null) operations.put({ ...head, nextAt: null, outage: false });
    for (const operation of reopened.filter((each) => queueOfOperation(each) === queue)) {
      move(transaction, operation, { type: 'reopen' });
    }
    scheduleHead(transaction, licenseKey, queue, { at: elapsed });
  }
}

/**
 * The answer to an attempt was lost: until the reconcile delay has passed, it may still be applied. A disable sets a
 * value, so it is simply repeated, but nothing else of its queue overtakes it; anything else becomes
 * uncertain and is read back after the reconcile delay, or held where the upstream has become another meanwhile.
 * (src/sync/README.md, After a lost response)
 */
export function loseAnswer(
  transaction: Transaction,
  operation: Operation,
  { reconcileAfterMs }: { reconcileAfterMs: number },
  context: Context,
): Operation {
  const until = context.elapsed + reconcileAfterMs;
  const event = operation.kind === 'disable' ? 'repeat' : 'ambiguous';
  const lost = move(transaction, { ...operation, reconcileAt: until }, { type: event });
  return holdIfElsewhere(transaction, lost, context);
}
