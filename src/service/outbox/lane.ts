import { backoffMs } from '../../domain/backoff.ts';
import { localState, type Observation } from '../../domain/observation.ts';
import {
  advance,
  laneOf,
  type LaneName,
  type Operation,
  type OperationEvent,
} from '../../domain/operation.ts';
import type { Context } from '../ports.ts';
import type { SyncPolicy } from './policy.ts';
import type { Transaction } from '../tables.ts';

/** When the head of a lane may take its next step (by `Clock.steady`), and why it waits. */
export type Wait = { at: number; outage?: boolean; failures?: number; lastError?: string | null };

/** Moves an operation by an event and stores it; one that leaves the front of its lane waits for nothing. */
export function move(transaction: Transaction, operation: Operation, event: OperationEvent): Operation {
  const moved: Operation = { ...advance(operation, event), nextAt: null, outage: false };
  transaction.operations.put(moved);
  return moved;
}

/** Lets the head of a lane take its next step no sooner than told. An empty lane waits for nothing. */
export function scheduleHead(transaction: Transaction, subject: string, lane: LaneName, wait: Wait): void {
  const head = transaction.operations.head(subject, lane);
  if (head === null) return;
  transaction.operations.put({
    ...head,
    nextAt: wait.at,
    outage: wait.outage ?? false,
    failures: wait.failures ?? 0,
    lastError: wait.lastError === undefined ? head.lastError : wait.lastError,
  });
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

/** Stores an observation with its local state reckoned anew from the operations in the store. */
export function putObservation(transaction: Transaction, observation: Observation): Observation {
  const operations = transaction.operations.shown(observation.license.licenseKey);
  const put = { ...observation, local: localState(observation.license, operations) };
  transaction.observations.put(put);
  return put;
}

/** How many operations have still a way to go, or wait for a person in doubt. */
export function unfinishedCount({ operations }: Transaction): number {
  const { pending, in_flight: inFlight, uncertain } = operations.depth();
  return pending + inFlight + uncertain;
}

/** The lane an operation stands in. */
export function laneOfOperation(operation: Operation): LaneName {
  return laneOf[operation.kind];
}
