import { laneOf, type Operation } from '../../../domain/outbox/operation.ts';
import { traced } from '../../../domain/outbox/operation-trace.ts';
import { done, refuse, type Result } from '../../../domain/problem/problem.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';

/** A change to be carried upward; the license key, coupon code or order it is about is its subject. */
export type NewOperation = Pick<Operation, 'kind' | 'subject' | 'productKey'> &
  Partial<Pick<Operation, 'seenEnabled' | 'payload'>>;

/** Refuses a change when `sync.max_pending` operations wait: nothing already accepted is dropped for room. */
export function refuseWhenFull(transaction: Transaction, maxPending: number): Result<null> {
  if (transaction.operations.unfinished() < maxPending) return done(null);
  return refuse(
    'storage_full',
    'The outbox is full (sync.max_pending): changes are taken again once the upstream has taken some.',
  );
}

/** Adds an operation at the end of its lane; one that is alone there is due at once. */
export function enqueue(
  { operations, trace }: Transaction,
  { kind, subject, productKey, seenEnabled = null, payload = null }: NewOperation,
  { now, steady, random, actor, requestId }: Context,
): Operation {
  const isHead = operations.isIdle(subject, laneOf[kind]);
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
    nextAt: isHead ? steady : null,
    outage: false,
    fencedUntil: null,
    upstream: null,
    lastError: null,
    seenEnabled,
    payload,
    progress: { state: 'pending', doubtful: false },
  });
  trace.add(traced('queued', operation));
  return operation;
}
