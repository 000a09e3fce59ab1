import { backoffMs } from '../../domain/outbox/backoff.ts';
import {
  localState,
  localStateByBacklog,
  type Observation,
  type SeenBefore,
} from '../../domain/agent/observation.ts';
import { laneOf, type LaneName, type Operation } from '../../domain/outbox/operation.ts';
import { advance, type OperationEvent } from '../../domain/outbox/operation-transitions.ts';
import { traced, tracePointOf } from '../../domain/outbox/operation-trace.ts';
import type { Context } from '../ports.ts';
import type { SyncPolicy } from './policy.ts';
import type { Reader, Transaction } from '../tables.ts';
import { lostPastUntil } from './settlement/lost-past.ts';

/** When the head of a lane may take its next step (by `Clock.steady`), and why it waits; `failures`: in a row. */
export type Wait = { at: number; outage?: boolean; failures?: number; lastError?: string | null };

/** Moves an operation by an event and stores it; one that leaves the front of its lane waits for nothing. */
export function move(transaction: Transaction, operation: Operation, event: OperationEvent): Operation {
  const moved: Operation = { ...advance(operation, event), nextAt: null, outage: false };
  transaction.operations.put(moved);
  const point = tracePointOf(event, moved.progress);
  if (point !== null) transaction.trace.add(traced(point, moved));
  return moved;
}

/**
 * Until when nothing of a lane may be sent, or settled by what was read, since an earlier request may still be on
 * its way; null when that is before `now`. `asDisable`: to send a disable, which may follow another one.
 */
export function fencedUntil(
  reader: Reader,
  { subject, lane, asDisable }: { subject: string; lane: LaneName; asDisable: boolean },
  now: number,
): number | null {
  const until = Math.max(
    reader.operations.fencedUntil(subject, lane, now, asDisable) ?? 0,
    lostPastUntil(reader),
  );
  return until > now ? until : null;
}

/**
 * Lets the head of a lane take its next step no sooner than told, and not before a fence of the lane has
 * passed. An empty lane waits for nothing. Gives the head.
 */
export function scheduleHead(
  transaction: Transaction,
  subject: string,
  lane: LaneName,
  { at, outage = false, failures, lastError }: Wait,
): Operation | null {
  const { operations } = transaction;
  const head = operations.head(subject, lane);
  if (head === null) return null;
  const fence = fencedUntil(transaction, { subject, lane, asDisable: head.kind === 'disable' }, at);
  operations.schedule({
    ...head,
    nextAt: fence ?? at,
    // The end of an outage does not end a fence.
    outage: outage && fence === null,
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
  { steady, random }: Context,
): Wait {
  const failures = operation.failures + 1;
  const waitMs = Math.max(backoffMs(policy.backoff, failures, random.draw()), failure.retryAfterMs ?? 0);
  return { at: steady + waitMs, outage: failure.outage, failures, lastError: failure.detail };
}

/**
 * Stores an observation with its local state reckoned anew from the operations in the store. `before`: what was stored,
 * where the first of the queue has been answered since and nothing else of it has changed.
 */
export function putObservation(
  transaction: Transaction,
  observation: Observation,
  before: SeenBefore | null = null,
): Observation {
  const { license } = observation;
  const { operations } = transaction;
  const local =
    localStateByBacklog(license, operations.backlog(license.licenseKey), before) ??
    localState(license, operations.shown(license.licenseKey));
  const put = { ...observation, local };
  transaction.observations.put(put);
  return put;
}

/** The lane an operation stands in. */
export function laneOfOperation(operation: Operation): LaneName {
  return laneOf[operation.kind];
}
