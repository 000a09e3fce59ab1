import {
  eventOfLoss,
  isHeld,
  mayHaveBeenApplied,
  type DeathCause,
  type Operation,
} from '../../domain/outbox/operation.ts';
import {
  isOutage,
  type Ambiguous,
  type Applied,
  type NotApplied,
  type Outcome,
} from '../../domain/outbox/outcome.ts';
import { done, failWith, type Result } from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import {
  endWait,
  move,
  queueOfOperation,
  scheduleHead,
  waitAfterFailure,
  type Failure,
  type SyncPolicy,
} from './queue.ts';
import { isKeyed } from './upstream/identity.ts';
import { holdIfElsewhere } from './upstream/change.ts';

/* What follows from a response to an operation, whether the operation was sent under its id or not. */

/** Why operations wait after an answer that is older than what is known here. */
export const olderAnswer: Failure = {
  detail: 'the upstream answered with older data than is known here: it was restored',
  retryAfterMs: null,
  outage: false,
};

/** The operation of a response; a response to an operation that is not in flight is not recorded. */
export function operationInFlight({ operations }: Transaction, operationId: string): Result<Operation> {
  const operation = operations.get(operationId);
  if (operation === null || operation.progress.state !== 'in_flight') {
    return failWith('operation_not_open', 'The operation is not in flight.');
  }
  return done(operation);
}

/** Makes an operation that was not applied wait for its next attempt. */
export function awaitNextAttempt(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: { outcome: NotApplied; policy: SyncPolicy },
  context: Context,
): void {
  // An earlier attempt may have been applied at a former upstream.
  if (isHeld(holdIfElsewhere(transaction, operation, context))) return;
  const failure = { ...outcome, outage: isOutage(outcome) };
  const wait = waitAfterFailure(operation, failure, policy, context);
  scheduleHead(transaction, operation.subject, queueOfOperation(operation), wait);
}

/**
 * Records the outcome of a request: calls `applied` or `notApplied`, or notes that it is unknown. Returns the operation as it
 * is then.
 */
export function recordOutcome<Value>(
  transaction: Transaction,
  operation: Operation,
  {
    outcome,
    policy,
    applied,
    notApplied,
  }: {
    outcome: Outcome<Value>;
    policy: SyncPolicy;
    applied: (outcome: Applied<Value>) => void;
    notApplied: (outcome: NotApplied) => void;
  },
  context: Context,
): Operation {
  if (outcome.outcome === 'applied') applied(outcome);
  else if (outcome.outcome === 'not_applied') notApplied(outcome);
  else recordAmbiguous(transaction, operation, { outcome, policy }, context);
  return transaction.operations.get(operation.id) ?? operation;
}

/** Records that an operation may have been applied. */
function recordAmbiguous(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: { outcome: Ambiguous; policy: SyncPolicy },
  context: Context,
): void {
  const wait = waitAfterFailure(operation, { ...outcome, outage: true }, policy, context);
  const lost = loseResponse(transaction, operation, policy, context);
  if (isHeld(lost)) return;
  // A read-back waits for the reconcile delay and for `Retry-After`, not for a backoff.
  const at = lost.progress.state === 'pending' ? wait.at : context.monotonic + (outcome.retryAfterMs ?? 0);
  scheduleHead(transaction, operation.subject, queueOfOperation(operation), { ...wait, at });
}

/**
 * The upstream will never accept this operation. It is dead, or held for a person if an earlier attempt may have been
 * applied (src/sync/README.md, Operation states).
 */
export function refuseOperation(
  transaction: Transaction,
  operation: Operation,
  { cause, detail }: { cause: DeathCause; detail: string },
): Operation {
  const lastError = mayHaveBeenApplied(operation)
    ? `${detail}; an earlier attempt may have been applied`
    : detail;
  return move(transaction, { ...operation, lastError }, { type: 'refused', cause });
}

/**
 * A change of state was delivered: earlier held changes no longer matter. A refused disable holds the key until an
 * enable is delivered.
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

/**
 * The upstream knows the key again: operations that died because it was missing return to their queue, in their order.
 */
export function reopenOperations(
  transaction: Transaction,
  licenseKey: string,
  { monotonic }: Pick<Context, 'monotonic'>,
): void {
  const { operations } = transaction;
  const isMissing = ({ progress }: Operation): boolean =>
    progress.state === 'dead' && progress.cause === 'missing';
  const reopened = operations.dead(licenseKey).filter(isMissing);
  for (const queue of new Set(reopened.map(queueOfOperation))) {
    // A retried operation of a person comes after the reopened operations.
    endWait(transaction, licenseKey, queue);
    for (const operation of reopened.filter((each) => queueOfOperation(each) === queue)) {
      // What was sent under its id may have arrived before the key was gone.
      move(transaction, operation, { type: isKeyed(operation) ? 'lose' : 'reopen' });
    }
    scheduleHead(transaction, licenseKey, queue, { at: monotonic });
  }
}

/**
 * The response to an attempt was lost: the request may still be applied until the reconcile delay has passed. A
 * disable sets a value and is repeated, but nothing else of its queue overtakes it. Any other operation becomes
 * uncertain, or is held if the upstream has changed meanwhile. An operation that was sent under its id is sent again.
 * (src/sync/PLAIN-UPSTREAM.md, After a lost response)
 */
export function loseResponse(
  transaction: Transaction,
  operation: Operation,
  { reconcileAfterMs }: { reconcileAfterMs: number },
  context: Context,
): Operation {
  const isResent = isKeyed(operation);
  const reconcileAt = isResent ? operation.reconcileAt : context.monotonic + reconcileAfterMs;
  const lost = move(transaction, { ...operation, reconcileAt }, eventOfLoss(operation, isResent));
  return holdIfElsewhere(transaction, lost, context);
}
