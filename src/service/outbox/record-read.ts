import { type License, maxAliases } from '../../domain/license.ts';
import {
  nextRefreshAt,
  noRun,
  observeMissing,
  readResultOf,
  type LicenseSnapshot,
} from '../../domain/agent/license-snapshot.ts';
import { mayHaveBeenApplied } from '../../domain/outbox/operation.ts';
import { isMissing, isOutage, type Applied, type Outcome } from '../../domain/outbox/outcome.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { currentRun } from '../lifecycle/run-count.ts';
import { confirmTime } from '../lifecycle/time-mark.ts';
import type { Context } from '../ports.ts';
import { features } from '../../features.ts';
import type { Transaction } from '../tables.ts';
import { postponeDueQueues, putSnapshot, scheduleHead, type SyncPolicy } from './queue.ts';
import { unknownHistoryUntil } from './upstream/waits.ts';
import { olderAnswer, refuseOperation, reopenOperations } from './after-response.ts';
import { reconcileCounter, reconcileState, refuseUses, type UnexpectedCount } from './reconcile.ts';
import { licenseIn, recordReadOfLatchkey } from './latchkey-response.ts';
import { epochNumber, isLatchkey } from './upstream/identity.ts';
import { observeEpoch } from './upstream/change.ts';
import { isOlderThanKnown } from './upstream/former.ts';

type RecordRead = {
  licenseKey: string;
  productId: string;
  outcome: Outcome<License>;
  /** When the read was sent (monotonic ms, `Clock.monotonic`): only a read sent after the reconcile delay decides. */
  sentAt: number;
  /** Whether a 404 counts. It does not if another known key got a 404 as well: then a gateway has lost its routes. */
  isMissingConfirmed: boolean;
  policy: SyncPolicy;
};

export type RecordedRead = {
  /** A count that neither the last response nor the uncertain operations explain. */
  unexpected: UnexpectedCount | null;
};

type AnsweredRead = RecordRead & { outcome: Applied<License> };

/**
 * Records the response to a read, and reconciles the operations of the key. The read held both queues of the key.
 * (src/sync/PLAIN-UPSTREAM.md, After a lost response)
 */
export function recordRead(
  transaction: Transaction,
  command: RecordRead,
  context: Context,
): Result<RecordedRead> {
  const outcome = verdictIn(transaction, command, context);
  if (outcome.outcome === 'applied')
    return done({ unexpected: recordAnswer(transaction, { ...command, outcome }, context) });
  recordFailure(transaction, { ...command, outcome }, context);
  return done({ unexpected: null });
}

/** A refusal that says something about a known license key is an answer about it. */
function verdictIn(
  { snapshots }: Transaction,
  { licenseKey, outcome }: RecordRead,
  { now: confirmedAt }: Context,
): Outcome<License> {
  if (outcome.outcome !== 'not_applied' || outcome.license === undefined) return outcome;
  const snapshot = snapshots.get(licenseKey);
  if (snapshot === null) return outcome;
  const value = { ...snapshot.license, ...outcome.license };
  return { outcome: 'applied', value, confirmedAt, isCached: false, shows: 'enabled' };
}

/** Returns a count that is not explained. */
function recordAnswer(
  transaction: Transaction,
  answered: AnsweredRead,
  context: Context,
): UnexpectedCount | null {
  const confirmedAt = confirmTime(transaction, answered.outcome.confirmedAt, context);
  const { isCached, value } = answered.outcome;
  if (isCached !== true) observeEpoch(transaction, answered.outcome, context);
  const { licenseKey } = value;
  // This read did not hold the queues of the key: it only shows under which name the key is known.
  if (adoptSpelling(transaction, answered.licenseKey, licenseKey, context) === 'known') return null;
  const before = transaction.snapshots.get(licenseKey);
  const outcome = { ...answered.outcome, confirmedAt, value: withKnown(answered.outcome, before) };
  const command = { ...answered, outcome };
  if (before !== null && outcome.isCached) {
    recordCached(transaction, before, command, context);
    return null;
  }
  const next = observe(transaction, command, before, context);
  if (before === null) putSnapshot(transaction, next);
  else if (isLatchkey(transaction) && !hasUncertain(transaction, licenseKey))
    recordReadOfLatchkey(transaction, { before, next }, command, context);
  else if (isOlderThanKnown(transaction, before, confirmedAt))
    recordOlder(transaction, before, command, context);
  else return recordReconciling(transaction, { before, next }, command, context);
  return null;
}

/** Returns a count that is not explained. */
function recordReconciling(
  transaction: Transaction,
  { before, next }: { before: LicenseSnapshot; next: LicenseSnapshot },
  { outcome, sentAt, policy }: AnsweredRead,
  context: Context,
): UnexpectedCount | null {
  const read = outcome.value;
  if (before.gone) reopenOperations(transaction, read.licenseKey, context);
  const reconciliation = { snapshot: before, read, sentAt, policy };
  const hasCount = outcome.shows !== 'enabled';
  const counted = (hasCount ? reconcileCounter : refuseUses)(transaction, reconciliation, context);
  reconcileState(transaction, reconciliation, context);
  putSnapshot(transaction, {
    ...next,
    license: counted.reconciled ? read : { ...read, uses: before.license.uses },
    run: counted.reconciled ? next.run : before.run,
    readFirst: counted.reconciled || !hasCount ? false : before.readFirst,
    manyWriters: next.manyWriters || counted.unexpected !== null,
  });
  return counted.unexpected;
}

/** A response that shows only whether the key is enabled, and perhaps until when, leaves the rest as it was known. */
export function withKnown(
  { value, shows }: Applied<License>,
  before: Pick<LicenseSnapshot, 'license'> | null,
): License {
  if (shows !== 'enabled' || before === null) return value;
  const { enabled, extra, expiresAt } = value;
  return {
    ...before.license,
    enabled,
    ...(extra !== undefined && { extra }),
    ...(expiresAt !== undefined && { expiresAt }),
  };
}

/** What was sent without an id is in doubt: the count and the state that were read decide. */
function hasUncertain({ operations }: Transaction, licenseKey: string): boolean {
  const queues = ['counter', 'state'] as const;
  return queues.some((queue) => operations.uncertain(licenseKey, queue).length > 0);
}

/** The snapshot that the response makes; `before`: the snapshot so far. */
function observe(
  transaction: Transaction,
  { productId, outcome, sentAt, policy }: AnsweredRead,
  before: LicenseSnapshot | null,
  context: Context,
): LicenseSnapshot {
  const { confirmedAt, isCached } = outcome;
  const license = licenseIn(outcome);
  const epoch = isLatchkey(transaction) ? epochNumber(transaction) : 0;
  const askedAt = before?.askedAt ?? context.now;
  const at = { ...context, fraction: context.random.fraction(), readResult: readResultOf(outcome) };
  return {
    license,
    local: { uses: license.uses, enabled: license.enabled, pending: 0 },
    productId,
    confirmedAt,
    run:
      isCached || outcome.shows === 'enabled' || sentAt < unknownHistoryUntil(transaction)
        ? noRun
        : currentRun(transaction),
    manyWriters: before?.manyWriters ?? false,
    missingSince: null,
    gone: false,
    readFirst: false,
    askedAt,
    refreshAt: nextRefreshAt({ askedAt }, policy, at),
    epoch,
  };
}

/**
 * Records the response of a cache. Callers see it if it is newer. It reconciles nothing and is no base: operations
 * keep waiting for a read.
 */
function recordCached(
  transaction: Transaction,
  before: LicenseSnapshot,
  command: AnsweredRead,
  context: Context,
): void {
  const { outcome, policy } = command;
  const { licenseKey, uses } = before.license;
  // The age comes from clocks that may be wrong: a cached response can disable a key, but not enable it.
  const enabled = before.license.enabled && outcome.value.enabled;
  const isNewer = outcome.confirmedAt > before.confirmedAt && before.missingSince === null;
  const next = isNewer
    ? { license: { ...outcome.value, licenseKey, uses, enabled }, confirmedAt: outcome.confirmedAt }
    : {};
  const readResult = isNewer ? 'known' : 'unanswered';
  const at = { ...context, fraction: context.random.fraction(), readResult } as const;
  const failure = { detail: 'a cache answered, not the upstream', retryAfterMs: null, outage: false };
  postponeDueQueues(transaction, licenseKey, { ...command, failure }, context);
  putSnapshot(transaction, { ...before, ...next, refreshAt: nextRefreshAt(before, policy, at) });
}

/** An upstream that is an agent was restored, and knows less than this store: its answer changes nothing. */
function recordOlder(
  transaction: Transaction,
  before: LicenseSnapshot,
  command: AnsweredRead,
  context: Context,
): void {
  const { policy } = command;
  const at = { ...context, fraction: context.random.fraction(), readResult: 'unanswered' } as const;
  postponeDueQueues(transaction, before.license.licenseKey, { ...command, failure: olderAnswer }, context);
  putSnapshot(transaction, { ...before, refreshAt: nextRefreshAt(before, policy, at) });
}

type FailedRead = RecordRead & { outcome: Exclude<Outcome<License>, { outcome: 'applied' }> };

function recordFailure(transaction: Transaction, command: FailedRead, context: Context): void {
  const { outcome, policy } = command;
  const snapshot = transaction.snapshots.get(command.licenseKey);
  if (snapshot === null) return;
  const { licenseKey } = snapshot.license;
  if (isMissing(outcome) && command.isMissingConfirmed) {
    recordMissing(transaction, snapshot, command, context);
    return;
  }
  const at = { ...context, fraction: context.random.fraction(), readResult: 'unanswered' } as const;
  transaction.snapshots.put({ ...snapshot, refreshAt: nextRefreshAt(snapshot, policy, at) });
  if (outcome.outcome === 'not_applied' && outcome.reason === 'unauthorized') return;
  const failure = { ...outcome, outage: isOutage(outcome) };
  postponeDueQueues(transaction, licenseKey, { ...command, failure }, context);
}

/**
 * A confirmed 404 about a key: its operations wait. After a second one, far enough apart, they are dead, or held if
 * uncertain.
 */
function recordMissing(
  transaction: Transaction,
  snapshot: LicenseSnapshot,
  command: FailedRead,
  context: Context,
): void {
  const { policy } = command;
  const { licenseKey } = snapshot.license;
  const missing = observeMissing(snapshot, context.monotonic, policy.goneMs);
  // The count with which the key returns may contain operations that were held without a read.
  const isCountDoubtful =
    missing.gone && transaction.operations.queue(licenseKey, 'counter').some(mayHaveBeenApplied);
  const next = isCountDoubtful ? { ...missing, run: noRun } : missing;
  const detail = 'the upstream does not know this license key';
  if (next.gone) {
    const { operations } = transaction;
    const waiting = [...operations.queue(licenseKey, 'counter'), ...operations.queue(licenseKey, 'state')];
    for (const operation of waiting.filter(({ progress }) => progress.state !== 'in_flight')) {
      refuseOperation(transaction, operation, { cause: 'missing', detail });
    }
  } else {
    const failure = { ...command.outcome, detail, outage: false };
    postponeDueQueues(transaction, licenseKey, { ...command, failure }, context);
  }
  const readResult = next.gone ? 'gone' : 'unanswered';
  const at = { ...context, fraction: context.random.fraction(), readResult } as const;
  putSnapshot(transaction, { ...next, refreshAt: nextRefreshAt(snapshot, policy, at) });
}

/**
 * Handles a license key that the upstream spells otherwise than it was requested. Its spelling becomes the subject of the
 * snapshot and the queues, the other one an alias. Two queues for one key would each take the other's uses for those of
 * another program. Returns `known` if the key was known under the upstream's spelling: then this read did not hold its
 * queues. (src/sync/README.md, Queues)
 */
function adoptSpelling(
  transaction: Transaction,
  requestedKey: string,
  upstreamKey: string,
  { now, monotonic }: Context,
): 'same' | 'known' | 'adopted' {
  if (requestedKey === upstreamKey) return 'same';
  const { snapshots, operations } = transaction;
  const ofUpstreamKey = snapshots.get(upstreamKey);
  const ofRequestedKey = snapshots.get(requestedKey);
  if (ofRequestedKey?.license.licenseKey !== upstreamKey)
    snapshots.addAlias(requestedKey, upstreamKey, { at: now, max: maxAliases });
  const isKnown = ofUpstreamKey !== null && ofUpstreamKey.license.licenseKey === upstreamKey;
  if (ofRequestedKey === null || ofRequestedKey.license.licenseKey !== requestedKey)
    return isKnown ? 'known' : 'adopted';
  // The key was known under the alias only, or under both names.
  operations.moveToSubject(requestedKey, upstreamKey);
  transaction.history.changeKey(requestedKey, upstreamKey);
  for (const { onKeyChange } of features) onKeyChange?.(transaction, requestedKey, upstreamKey);
  snapshots.remove(requestedKey);
  snapshots.moveAliases(requestedKey, upstreamKey);
  // If it was known under both, its count may contain uses that were counted under the alias.
  const manyWriters = ofUpstreamKey?.manyWriters === true || ofRequestedKey.manyWriters;
  const merged = isKnown
    ? { ...ofUpstreamKey, run: noRun, manyWriters }
    : { ...ofRequestedKey, license: { ...ofRequestedKey.license, licenseKey: upstreamKey } };
  putSnapshot(transaction, merged);
  for (const queue of ['counter', 'state'] as const) {
    const head = operations.head(upstreamKey, queue);
    if (head !== null && head.progress.state !== 'in_flight')
      scheduleHead(transaction, upstreamKey, queue, { at: monotonic });
  }
  return isKnown ? 'known' : 'adopted';
}
