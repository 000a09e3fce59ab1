import { countAfter, type License } from '../../domain/license.ts';
import { nextRefreshAt, observeMissing, type Observation } from '../../domain/observation.ts';
import type { Operation } from '../../domain/operation.ts';
import { isOutage, type NotApplied, type Outcome } from '../../domain/outcome.ts';
import { done, refuse, type Result } from '../../domain/problem.ts';
import { currentBoot } from '../lifecycle/boot.ts';
import { laneOfOperation, move, putObservation, scheduleHead, waitAfterFailure, type Wait } from './lane.ts';
import type { Context } from '../ports.ts';
import type { SyncPolicy } from './policy.ts';
import type { Transaction } from '../tables.ts';

export type RecordAnswer = {
  operationId: string;
  outcome: Outcome<License>;
  /** The key's other lane had a request under way too: only this lane's member of the answer counts. */
  overlapped: boolean;
  policy: SyncPolicy;
};

/** A count that moved otherwise than this agent's own operations say: another writer. */
export type UnexpectedCount = { expected: number; got: number };

export type RecordedAnswer = { operation: Operation; unexpected: UnexpectedCount | null };

/** Records what became of an operation that was sent (sync design, section 4). */
export function recordAnswer(
  transaction: Transaction,
  command: RecordAnswer,
  context: Context,
): Result<RecordedAnswer> {
  const operation = transaction.operations.get(command.operationId);
  if (operation === null || operation.progress.state !== 'in_flight') {
    return refuse('operation_not_open', 'The operation is not in flight.');
  }
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
  return done({ operation: transaction.operations.get(operation.id) ?? operation, unexpected: null });
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
  const { now, steady } = context;
  const delivered = move(transaction, operation, { type: 'applied', at: now });
  const lane = laneOfOperation(operation);
  scheduleHead(transaction, operation.subject, lane, { at: steady });
  const observation = transaction.observations.get(operation.subject);
  if (observation === null) return { operation: delivered, unexpected: null };
  const isCounted = lane === 'counter' || mayCountFrom(transaction, observation, overlapped);
  const expected = lane === 'counter' ? countSent(operation) : observation.license.uses;
  const unexpected = isCounted ? unexpectedCount(expected, outcome.value) : null;
  const seen: Observation = {
    ...observation,
    license: {
      ...outcome.value,
      licenseKey: operation.subject,
      uses: isCounted ? outcome.value.uses : observation.license.uses,
      enabled: overlapped && lane === 'counter' ? observation.license.enabled : outcome.value.enabled,
    },
    confirmedAt: outcome.confirmedAt,
    boot: isCounted ? currentBoot(transaction) : observation.boot,
    manyWriters: observation.manyWriters || unexpected !== null,
    missingSince: null,
    gone: false,
    refreshAt: nextRefreshAt(observation, policy, { ...context, draw: context.random.draw(), isKnown: true }),
  };
  const asShown =
    unexpected === null && lane === 'counter' && seen.license.enabled === observation.license.enabled;
  if (asShown && observation.license.uses >= 0) {
    // What is confirmed now was shown before: one change fewer is pending, and nothing else moves.
    const local = { ...observation.local, pending: observation.local.pending - 1 };
    transaction.observations.put({ ...seen, local });
  } else {
    putObservation(transaction, seen);
  }
  return { operation: delivered, unexpected };
}

/**
 * Whether the count in a state's answer may be counted from: only one that can contain nothing of this
 * agent's counter, and does not stand in for the first read after a start, which has more to settle.
 */
function mayCountFrom(transaction: Transaction, observation: Observation, overlapped: boolean): boolean {
  const isCounterEmpty = transaction.operations.tail(observation.license.licenseKey, 'counter') === null;
  return isCounterEmpty && !overlapped && observation.boot === currentBoot(transaction);
}

/** The count after a counter operation, as far as nobody else changed it. */
function countSent({ kind, progress }: Operation): number | null {
  if (progress.state !== 'in_flight' || progress.baseUses === null) return null;
  return kind === 'usage' || kind === 'decrease' ? countAfter(progress.baseUses, kind) : null;
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
  const lane = laneOfOperation(operation);
  if (outcome.reason === 'refused') {
    move(transaction, { ...operation, lastError: outcome.detail }, { type: 'refused' });
    scheduleHead(transaction, operation.subject, lane, { at: context.steady });
    recount(transaction, operation.subject);
    return;
  }
  move(transaction, operation, { type: 'not_applied' });
  if (outcome.reason === 'missing') {
    recordMissing(transaction, operation.subject, outcome, { policy, context });
    return;
  }
  scheduleHead(transaction, operation.subject, lane, waitAfterRefusal(operation, outcome, policy, context));
}

function waitAfterRefusal(
  operation: Operation,
  outcome: NotApplied,
  policy: SyncPolicy,
  context: Context,
): Wait {
  // The whole product pauses until its credential is accepted; its lanes then go on at once.
  if (outcome.reason === 'unauthorized') return { at: context.steady, lastError: outcome.detail };
  return waitAfterFailure(operation, { ...outcome, outage: isOutage(outcome) }, policy, context);
}

/**
 * Records a 404 about a key: its operations wait until the upstream has said so twice, far enough apart,
 * and are then dead.
 */
export function recordMissing(
  transaction: Transaction,
  licenseKey: string,
  outcome: NotApplied,
  { policy, context }: { policy: SyncPolicy; context: Context },
): void {
  const observation = transaction.observations.get(licenseKey);
  if (observation === null) return;
  const seen = observeMissing(observation, context.now, policy.goneMs);
  const lastError = 'the upstream does not know this license key';
  for (const lane of ['counter', 'state'] as const) {
    if (seen.gone) {
      for (const operation of transaction.operations.lane(licenseKey, lane)) {
        if (operation.progress.state !== 'in_flight') {
          move(transaction, { ...operation, lastError }, { type: 'refused' });
        }
      }
    } else {
      const head = transaction.operations.head(licenseKey, lane);
      if (head !== null && head.progress.state !== 'in_flight') {
        const wait = waitAfterFailure(
          head,
          { ...outcome, detail: lastError, outage: false },
          policy,
          context,
        );
        const goneAt = context.steady + policy.goneMs;
        // A fence that it waits for is never cut short.
        const at = Math.max(wait.at, goneAt, head.nextAt ?? 0);
        scheduleHead(transaction, licenseKey, lane, { ...wait, at });
      }
    }
  }
  putObservation(transaction, seen);
}

function recordAmbiguous(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: Answered<'ambiguous'>,
  context: Context,
): void {
  const wait = waitAfterFailure(operation, { ...outcome, outage: true }, policy, context);
  const lane = laneOfOperation(operation);
  if (operation.kind === 'disable') {
    // It sets a value, so it is repeated freely, with no doubt to settle; but none of its attempts may
    // overtake an enable that follows.
    move(transaction, operation, { type: 'not_applied' });
    scheduleHead(transaction, operation.subject, lane, wait);
    const observation = transaction.observations.get(operation.subject);
    const lingersUntil = context.steady + policy.fenceMs;
    if (observation !== null) transaction.observations.put({ ...observation, lingersUntil });
    return;
  }
  move(transaction, operation, { type: 'ambiguous' });
  const settleAt = context.steady + Math.max(policy.fenceMs, outcome.retryAfterMs ?? 0);
  scheduleHead(transaction, operation.subject, lane, { ...wait, at: settleAt, outage: false });
}

function recount(transaction: Transaction, licenseKey: string): void {
  const observation = transaction.observations.get(licenseKey);
  if (observation !== null) putObservation(transaction, observation);
}

/** Lets every lane that an outage had made wait go on: the upstream answers again. */
export function endOutage(
  transaction: Transaction,
  _: Record<string, never>,
  { steady }: Context,
): Result<null> {
  transaction.operations.endOutage(steady);
  return done(null);
}
