import { countApplied } from '../../domain/count.ts';
import type { License } from '../../domain/license.ts';
import { nextRefreshAt, type Observation } from '../../domain/observation.ts';
import type { Operation } from '../../domain/operation.ts';
import { isOutage, type Applied, type Outcome } from '../../domain/outcome.ts';
import { done, type Result } from '../../domain/problem.ts';
import { currentBoot, lastSeqBefore } from '../lifecycle/boot.ts';
import { baseOf, counterKind, doubtEarlier } from './doubt.ts';
import { move, putObservation, scheduleHead, waitAfterFailure, type Failure } from './lane.ts';
import type { Context } from '../ports.ts';
import { recordMissing, type UnexpectedCount } from './record-answer.ts';
import type { SyncPolicy } from './policy.ts';
import type { Transaction } from '../tables.ts';

export type RecordRead = {
  licenseKey: string;
  productKey: string;
  outcome: Outcome<License>;
  /** `Clock.steady` when the read was sent: only one that came after a fence may settle what it guards. */
  sentAt: number;
  policy: SyncPolicy;
};

export type RecordedRead = {
  observation: Observation | null;
  /** A count that neither the last answer nor this agent's doubtful operations explain. */
  unexpected: UnexpectedCount | null;
};

/** The boot of an observation that no start of this process may count from. */
const noBoot = 0;

type Settling = { observation: Observation; read: License; sentAt: number; policy: SyncPolicy };

/**
 * Records an answer to a read of a key, and settles by it what waited to be read back (sync design,
 * section 4). The read had both lanes of the key to itself.
 */
export function recordRead(
  transaction: Transaction,
  command: RecordRead,
  context: Context,
): Result<RecordedRead> {
  const { licenseKey, productKey, outcome, sentAt, policy } = command;
  const before = transaction.observations.get(licenseKey);
  if (outcome.outcome !== 'applied') {
    recordFailure(transaction, command, context);
    return done({ observation: transaction.observations.get(licenseKey), unexpected: null });
  }
  if (before !== null && outcome.isCached) {
    const observation = recordCached(transaction, before, { ...command, outcome }, context);
    return done({ observation, unexpected: null });
  }
  const read = { ...outcome.value, licenseKey };
  const askedAt = before?.askedAt ?? context.now;
  const seen: Observation = {
    license: read,
    local: { uses: read.uses, enabled: read.enabled, pending: 0 },
    productKey,
    confirmedAt: outcome.confirmedAt,
    boot: outcome.isCached ? noBoot : currentBoot(transaction),
    manyWriters: before?.manyWriters ?? false,
    missingSince: null,
    gone: false,
    lingersUntil: stillLingers(before, context),
    askedAt,
    refreshAt: nextRefreshAt({ askedAt }, policy, { ...context, draw: context.random.draw(), isKnown: true }),
  };
  if (before === null) return done({ observation: putObservation(transaction, seen), unexpected: null });
  const settling = { observation: before, read, sentAt, policy };
  const counted = settleCounter(transaction, settling, context);
  settleState(transaction, settling, context);
  const observation = putObservation(transaction, {
    ...seen,
    license: counted.settled ? read : { ...read, uses: before.license.uses },
    boot: counted.settled ? seen.boot : before.boot,
    manyWriters: seen.manyWriters || counted.unexpected !== null,
  });
  return done({ observation, unexpected: counted.unexpected });
}

function stillLingers(before: Observation | null, { steady }: Context): number | null {
  const lingersUntil = before?.lingersUntil ?? null;
  return lingersUntil !== null && lingersUntil > steady ? lingersUntil : null;
}

type SettledCounter = {
  /** Whether the count read may be counted from: no doubt is left that it could contain. */
  settled: boolean;
  unexpected: UnexpectedCount | null;
};

function settleCounter(transaction: Transaction, settling: Settling, context: Context): SettledCounter {
  const { observation, read, sentAt, policy } = settling;
  const subject = observation.license.licenseKey;
  const head = transaction.operations.head(subject, 'counter');
  const doubtful = transaction.operations
    .lane(subject, 'counter')
    .filter(({ progress }) => progress.state === 'uncertain');
  const base = baseOf(doubtful) ?? observation.license.uses;
  const applied = countApplied(base, doubtful.map(counterKind), read.uses);
  const firstSinceStart = observation.boot !== currentBoot(transaction);
  const isAlone = policy.writers === 'single' && !observation.manyWriters;
  if (applied === null && firstSinceStart) {
    const seen = { readUses: read.uses, isAlone, lastSeq: lastSeqBefore(transaction) };
    if (doubtEarlier(transaction, observation, seen, context.steady + policy.fenceMs)) {
      return { settled: false, unexpected: null };
    }
  }
  if (doubtful.length > 0) {
    if (head !== null && head.nextAt !== null && sentAt < head.nextAt)
      return { settled: false, unexpected: null };
    settleDoubtful(transaction, doubtful, { ...settling, applied }, context);
  }
  takeBackNothing(transaction, settling, context);
  scheduleHead(transaction, subject, 'counter', { at: context.steady });
  const unexpected = applied === null ? { expected: base, got: read.uses } : null;
  return { settled: true, unexpected };
}

/** As many as the count has moved, in order, were applied; the rest are sent. */
function settleDoubtful(
  transaction: Transaction,
  doubtful: readonly Operation[],
  { observation, policy, applied }: Settling & { applied: number | null },
  { now }: Context,
): void {
  const certain = applied !== null && policy.writers === 'single' && !observation.manyWriters;
  for (const [index, operation] of doubtful.entries()) {
    if (index >= (applied ?? doubtful.length)) {
      move(transaction, operation, { type: 'read_absent', certain });
    } else if (!certain && policy.onDoubt === 'hold') {
      move(transaction, operation, { type: 'hold' });
    } else {
      move(transaction, operation, { type: 'read_applied', certain, at: now });
    }
  }
}

/** A read made for this attempt shows 0: the decrease at the front has nothing to take back. */
function takeBackNothing(
  transaction: Transaction,
  { observation, read, sentAt }: Settling,
  { now }: Context,
): void {
  const head = transaction.operations.head(observation.license.licenseKey, 'counter');
  if (head === null || head.nextAt === null || sentAt < head.nextAt || read.uses > 0) return;
  if (head.kind === 'decrease' && head.progress.state === 'pending') {
    move(transaction, head, { type: 'needless', at: now });
  }
}

function settleState(
  transaction: Transaction,
  { observation, read, sentAt }: Settling,
  { now, steady }: Context,
): void {
  const subject = observation.license.licenseKey;
  const head = transaction.operations.head(subject, 'state');
  if (head === null || head.nextAt === null || sentAt < head.nextAt) return;
  const holds = read.enabled === (head.kind === 'enable');
  if (head.progress.state === 'uncertain') {
    const event = holds
      ? ({ type: 'read_applied', certain: true, at: now } as const)
      : ({ type: 'read_absent', certain: true } as const);
    move(transaction, head, event);
  } else if (head.progress.state === 'pending' && head.kind === 'enable' && holds) {
    move(transaction, head, { type: 'needless', at: now });
  }
  scheduleHead(transaction, subject, 'state', { at: steady });
}

/**
 * Records what a cache on the way answered: callers see what is newer than what they saw, but nothing is
 * settled by it or counted from it, so that what waited for this read waits on.
 */
function recordCached(
  transaction: Transaction,
  before: Observation,
  command: RecordRead & { outcome: Applied<License> },
  context: Context,
): Observation {
  const { outcome, policy } = command;
  const { licenseKey, uses } = before.license;
  const isNewer = outcome.confirmedAt > before.confirmedAt && before.missingSince === null;
  const seen = isNewer
    ? { license: { ...outcome.value, licenseKey, uses }, confirmedAt: outcome.confirmedAt }
    : {};
  const at = { ...context, draw: context.random.draw(), isKnown: isNewer };
  const detail = 'a cache on the way answered, not the upstream';
  postponeDue(transaction, command, { detail, retryAfterMs: null, outage: false }, context);
  return putObservation(transaction, { ...before, ...seen, refreshAt: nextRefreshAt(before, policy, at) });
}

function recordFailure(transaction: Transaction, command: RecordRead, context: Context): void {
  const { licenseKey, outcome, policy } = command;
  if (outcome.outcome === 'applied') return;
  const observation = transaction.observations.get(licenseKey);
  if (observation === null) return;
  const at = { ...context, draw: context.random.draw(), isKnown: false };
  transaction.observations.put({ ...observation, refreshAt: nextRefreshAt(observation, policy, at) });
  if (outcome.outcome === 'not_applied' && outcome.reason === 'missing') {
    recordMissing(transaction, licenseKey, outcome, { policy, context });
    return;
  }
  if (outcome.outcome === 'not_applied' && outcome.reason === 'unauthorized') return;
  postponeDue(transaction, command, { ...outcome, outage: isOutage(outcome) }, context);
}

/** Lets the lanes of a key wait for which a read brought nothing. */
function postponeDue(
  transaction: Transaction,
  { licenseKey, policy, sentAt }: RecordRead,
  failure: Failure,
  context: Context,
): void {
  for (const lane of ['counter', 'state'] as const) {
    const head = transaction.operations.head(licenseKey, lane);
    // Only a lane that was due had this read made for it.
    if (head !== null && head.nextAt !== null && head.nextAt <= sentAt) {
      scheduleHead(transaction, licenseKey, lane, waitAfterFailure(head, failure, policy, context));
    }
  }
}
