import { type BackoffPolicy, backoffMs } from '../../domain/outbox/delivery.ts';
import {
  type RefreshPolicy,
  localState,
  localStateByBacklog,
  type LicenseSnapshot,
  type SeenBefore,
} from '../../domain/agent/license-snapshot.ts';
import {
  queueOf,
  type QueueName,
  type Operation,
  advance,
  type OperationEvent,
  traced,
  tracePointOf,
} from '../../domain/outbox/operation.ts';
import type { Context } from '../ports.ts';
import type { Reader, Transaction } from '../tables.ts';
import { done, refuse, type Result } from '../../domain/problem/problem.ts';
import { unknownHistoryUntil } from './sync-marks.ts';

/** How operations are delivered (configuration `sync` and `freshness`). Times are ms. */
export type SyncPolicy = {
  /** Quiet time before a lost answer is read back. */
  reconcileAfterMs: number;
  /** `single`: this agent alone changes `uses`. */
  writers: 'single' | 'many';
  /** What becomes of uncertainty that another writer could explain. */
  onUncertain: 'infer' | 'hold';
  backoff: BackoffPolicy;
  /** How far apart two 404s must be for the key to be gone. */
  goneMs: number;
} & RefreshPolicy;

/** When the head of a queue may take its next step (by `Clock.elapsed`), and why it waits; `failures`: in a row. */
type Wait = { at: number; outage?: boolean; failures?: number; lastError?: string | null };

/** Moves an operation by an event and stores it; one that leaves the front of its queue waits for nothing. */
export function move(transaction: Transaction, operation: Operation, event: OperationEvent): Operation {
  const moved: Operation = { ...advance(operation, event), nextAt: null, outage: false };
  transaction.operations.put(moved);
  const point = tracePointOf(event, moved.progress);
  if (point !== null) transaction.trace.add(traced(point, moved));
  return moved;
}

/**
 * Until when nothing of a queue may be sent, or reconciled by what was read, since an earlier request may still be on
 * its way; null when that is before `now`. `asDisable`: to send a disable, which may follow another one.
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
 * Lets the head of a queue take its next step no sooner than told, and not before a reconcile delay of the queue has
 * passed. An empty queue waits for nothing. Gives the head.
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
    // A read that brings something ends the failures of reads, not those of attempts.
    failures: failures ?? Math.min(head.failures, head.attempts),
    lastError: lastError === undefined ? head.lastError : lastError,
  });
  return head;
}

/** Why an attempt brought nothing, and what the upstream asked for. */
export type Failure = { detail: string; retryAfterMs: number | null; outage: boolean };

/** The wait after one more failure in a row of this operation; `Retry-After` is a floor. */
export function waitAfterFailure(
  operation: Operation,
  failure: Failure,
  policy: SyncPolicy,
  { elapsed, random }: Context,
): Wait {
  const failures = operation.failures + 1;
  const waitMs = Math.max(backoffMs(policy.backoff, failures, random.draw()), failure.retryAfterMs ?? 0);
  return { at: elapsed + waitMs, outage: failure.outage, failures, lastError: failure.detail };
}

/**
 * Stores an snapshot with its local state reckoned anew from the operations in the store. `before`: what was stored,
 * where the first of the queue has been answered since and nothing else of it has changed.
 */
export function putSnapshot(
  transaction: Transaction,
  snapshot: LicenseSnapshot,
  before: SeenBefore | null = null,
): LicenseSnapshot {
  const { license } = snapshot;
  const { operations } = transaction;
  const local =
    localStateByBacklog(license, operations.backlog(license.licenseKey), before) ??
    localState(license, operations.shown(license.licenseKey));
  const put = { ...snapshot, local };
  transaction.snapshots.put(put);
  return put;
}

/** The queue an operation stands in. */
export function queueOfOperation(operation: Operation): QueueName {
  return queueOf[operation.kind];
}

/** A change to be carried upward; the license key, coupon code or order it is about is its subject. */
type NewOperation = Pick<Operation, 'kind' | 'subject' | 'productKey'> &
  Partial<Pick<Operation, 'seenEnabled' | 'payload'>>;

/** Refuses a change when `sync.max_pending` operations wait: nothing already accepted is dropped for room. */
export function refuseWhenFull(transaction: Transaction, maxPending: number): Result<null> {
  if (transaction.operations.unfinished() < maxPending) return done(null);
  return refuse(
    'storage_full',
    'The outbox is full (sync.max_pending): changes are taken again once the upstream has taken some.',
  );
}

/** Adds an operation at the end of its queue; one that is alone there is due at once. */
export function enqueue(
  { operations, trace }: Transaction,
  { kind, subject, productKey, seenEnabled = null, payload = null }: NewOperation,
  { now, elapsed, random, actor, requestId }: Context,
): Operation {
  const isHead = operations.isIdle(subject, queueOf[kind]);
  const operation = operations.add({
    id: random.uuid(now),
    kind,
    subject,
    productKey,
    createdAt: now,
    credential: actor,
    requestId,
    attempts: 0,
    failures: 0,
    nextAt: isHead ? elapsed : null,
    outage: false,
    reconcileAt: null,
    upstream: null,
    lastError: null,
    seenEnabled,
    payload,
    progress: { state: 'pending', maybeApplied: false },
  });
  trace.add(traced('queued', operation));
  return operation;
}

const finishedKeptMs = 7 * 24 * 3_600_000;

/**
 * Removes at most so many operations that have been finished for 7 days. Operations that a jump of the clock, which was
 * taken back since, has dated in the future are dated to now: otherwise they would stay for as long as the jump was.
 * Returns how many operations were removed or dated. `removalTime`: epoch ms (domain/clock.ts).
 */
export function pruneOperations(
  transaction: Transaction,
  { removalTime, limit }: { removalTime: number; limit: number },
  { now }: Pick<Context, 'now'>,
): Result<{ removed: number }> {
  const { operations } = transaction;
  const dated = operations.bringBack(now, limit);
  return done({ removed: dated + operations.prune(removalTime - finishedKeptMs, limit) });
}
