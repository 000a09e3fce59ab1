import type { License } from '../../domain/license.ts';
import { type BackoffPolicy, backoffMs } from '../../domain/outbox/delivery.ts';
import {
  type RefreshPolicy,
  localState,
  localStateFromBacklog,
  type LicenseSnapshot,
  type SeenBefore,
} from '../../domain/agent/license-snapshot.ts';
import {
  queueOf,
  type QueueName,
  type Operation,
  advance,
  type OperationEvent,
  needsReview,
} from '../../domain/outbox/operation.ts';
import { traced, tracePointOf } from '../../domain/outbox/trace.ts';
import { enabledEvent } from '../../domain/event.ts';
import { areEventsWanted, note } from '../events.ts';
import type { Context, Keyed } from '../ports.ts';
import type { Reader, Transaction } from '../tables.ts';
import { done, failWith, type Result } from '../../domain/problem/problem.ts';
import { isLatchkey } from './upstream/identity.ts';
import { unknownHistoryUntil } from './upstream/waits.ts';

/** How operations are delivered (settings `sync` and `freshness`). Times are ms. */
export type SyncPolicy = {
  /** How long to wait after a lost response before the key is read back. */
  reconcileAfterMs: number;
  /** `single`: only this agent changes `uses`. */
  writers: 'single' | 'many';
  /** What happens to an uncertain operation if another writer could explain the count. */
  onUncertain: 'infer' | 'hold';
  backoff: BackoffPolicy;
  /** How far apart two 404s must be for the key to be gone. */
  goneMs: number;
} & RefreshPolicy;

/** When the head of a queue may take its next step (monotonic ms), and why it waits. `failures`: failures in a row. */
type Wait = { at: number; outage?: boolean; failures?: number; lastError?: string | null };

/** Moves an operation by an event and stores it. Clears its wait; `scheduleHead` sets the next one. */
export function move(transaction: Transaction, operation: Operation, event: OperationEvent): Operation {
  const moved: Operation = { ...advance(operation, event), nextAt: null, outage: false };
  transaction.operations.put(moved);
  const point = tracePointOf(event, moved.progress);
  if (point !== null) transaction.trace.add(traced(point, moved));
  if (needsReview(moved.progress) && !needsReview(operation.progress)) {
    transaction.events.add({ type: 'outbox.needs_review', subject: moved.id });
  }
  return moved;
}

/**
 * Until when nothing of a queue may be sent or reconciled, because an earlier request may still arrive; null if that
 * is before `now`. `asDisable`: to send a disable, which may follow another disable.
 */
export function nextReconcileAt(
  reader: Reader,
  { subject, queue, asDisable }: { subject: string; queue: QueueName; asDisable: boolean },
  now: number,
): number | null {
  const until = Math.max(
    reader.operations.reconcileAt(subject, queue, now, asDisable) ?? 0,
    unknownHistoryUntil(reader),
  );
  return until > now ? until : null;
}

/**
 * Lets the head of a queue take its next step at `at`, or later if the reconcile delay has not passed. Returns the
 * head.
 */
export function scheduleHead(
  transaction: Transaction,
  subject: string,
  queue: QueueName,
  { at, outage = false, failures, lastError }: Wait,
): Operation | null {
  const { operations } = transaction;
  const head = operations.head(subject, queue);
  if (head === null) return null;
  const delayed = nextReconcileAt(transaction, { subject, queue, asDisable: head.kind === 'disable' }, at);
  operations.schedule({
    ...head,
    nextAt: delayed ?? at,
    // The end of an outage does not end a reconcile delay.
    outage: outage && delayed === null,
    // A successful read resets failures of reads, not of attempts.
    failures: failures ?? Math.min(head.failures, head.attempts),
    lastError: lastError === undefined ? head.lastError : lastError,
  });
  return head;
}

/**
 * Ends the wait of the head of a queue, before an earlier operation comes back into the queue: only a head has a time.
 * Schedule the head afterwards. Returns the former head.
 */
export function endWait({ operations }: Transaction, subject: string, queue: QueueName): Operation | null {
  const head = operations.head(subject, queue);
  if (head !== null) operations.put({ ...head, nextAt: null, outage: false });
  return head;
}

/** Why an attempt failed, and what the upstream asked for. */
export type Failure = { detail: string; retryAfterMs: number | null; outage: boolean };

/** The wait after one more failure in a row; `Retry-After` is the minimum. */
export function waitAfterFailure(
  operation: Operation,
  failure: Failure,
  policy: SyncPolicy,
  { monotonic, random }: Context,
): Wait {
  const failures = operation.failures + 1;
  const waitMs = Math.max(backoffMs(policy.backoff, failures, random.fraction()), failure.retryAfterMs ?? 0);
  return { at: monotonic + waitMs, outage: failure.outage, failures, lastError: failure.detail };
}

/** The queues that were due needed this read, which brought nothing: they wait. */
export function postponeDueQueues(
  transaction: Transaction,
  licenseKey: string,
  { policy, sentAt, failure }: { policy: SyncPolicy; sentAt: number; failure: Failure },
  context: Context,
): void {
  for (const queue of ['counter', 'state'] as const) {
    const head = transaction.operations.head(licenseKey, queue);
    if (head !== null && head.nextAt !== null && head.nextAt <= sentAt) {
      scheduleHead(transaction, licenseKey, queue, waitAfterFailure(head, failure, policy, context));
    }
  }
}

/**
 * Stores a snapshot with the local state that the operations in the store add up to. `before`: the stored snapshot, if
 * the first operation of the queue was answered and nothing else changed.
 */
export function putSnapshot(
  transaction: Transaction,
  snapshot: LicenseSnapshot,
  before: SeenBefore | null = null,
): LicenseSnapshot {
  const license = withDate(transaction, snapshot);
  const { operations } = transaction;
  const local =
    localStateFromBacklog(license, operations.backlog(license.licenseKey), before) ??
    localState(license, operations.visibleToCallers(license.licenseKey));
  const put = { ...snapshot, license, local };
  if (areEventsWanted(transaction)) {
    const stored = transaction.snapshots.get(license.licenseKey);
    const wasEnabled = stored?.local.enabled ?? local.enabled;
    note(transaction, enabledEvent(license.licenseKey, wasEnabled, local.enabled));
  }
  transaction.snapshots.put(put);
  return put;
}

/** Of a license without a date of sale (0), the time at which the upstream first confirmed it is shown. */
function withDate({ snapshots }: Transaction, { license, confirmedAt }: LicenseSnapshot): License {
  if (license.createdAt !== 0) return license;
  const before = snapshots.get(license.licenseKey)?.license.createdAt ?? 0;
  return { ...license, createdAt: before === 0 ? confirmedAt : before };
}

export function queueOfOperation(operation: Operation): QueueName {
  return queueOf[operation.kind];
}

/**
 * A change to deliver. `amount`: 1 unless given. `id`: a device has given it. `below`: the request of an agent below, whose
 * id it gets. `maybeApplied`, `unanswered`: it may have been sent before.
 */
type NewOperation = Pick<Operation, 'kind' | 'subject' | 'productId'> &
  Partial<Pick<Operation, 'id' | 'amount' | 'seenEnabled' | 'seenRevision' | 'payload'>> &
  Partial<{ maybeApplied: boolean; unanswered: boolean; below: Keyed | null }>;

/** Refuses changes above `sync.max_pending` waiting operations: an accepted operation is never dropped for space. */
export function refuseWhenFull(transaction: Transaction, maxPending: number, changes = 1): Result<null> {
  if (changes === 0 || transaction.operations.unfinished() + changes <= maxPending) return done(null);
  return failWith(
    'storage_full',
    'The outbox is full (sync.max_pending): changes are taken again once the upstream has taken some.',
  );
}

/**
 * Adds an operation at the end of its queue. If it is alone there, it is due at once. What an agent below repeats, this agent
 * may have sent before it lost its store: it is in doubt since its caller asked.
 */
export function enqueue(
  transaction: Transaction,
  {
    id,
    kind,
    amount = 1,
    subject,
    productId,
    seenEnabled = null,
    seenRevision = null,
    payload = null,
    maybeApplied = false,
    below = null,
    unanswered = false,
  }: NewOperation,
  { now, monotonic, random, actor, requestId }: Context,
): Operation {
  const { operations, trace } = transaction;
  const isRepeat = below?.isRepeat === true && isLatchkey(transaction);
  const isHead = operations.isIdle(subject, queueOf[kind]);
  const operation = operations.add({
    id: below?.id ?? id ?? random.uuid(now),
    kind,
    amount,
    subject,
    productId,
    createdAt: isRepeat ? Math.min(below.createdAt, now) : now,
    credential: actor,
    requestId,
    attempts: 0,
    failures: 0,
    nextAt: isHead ? monotonic : null,
    outage: false,
    reconcileAt: null,
    upstream: null,
    lastError: null,
    seenEnabled,
    seenRevision,
    payload,
    progress: { state: 'pending', maybeApplied, unanswered: unanswered || isRepeat },
  });
  trace.add(traced('queued', operation));
  return operation;
}
