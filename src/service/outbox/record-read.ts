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
import { currentRun, confirmTime } from '../lifecycle/current-run.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import {
  putSnapshot,
  queueOfOperation,
  scheduleHead,
  waitAfterFailure,
  type Failure,
  type SyncPolicy,
  unknownHistoryUntil,
} from './queue.ts';
import { type UnexpectedCount, refuseOperation, reopenOperations } from './record-response.ts';
import { reconcileCounter, reconcileState } from './reconcile.ts';
import { protocolOf } from './protocol.ts';
import { isOlderThanKnown, observeInstance } from './upstream-state.ts';

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
 * (src/sync/README.md, After a lost response)
 */
export function recordRead(
  transaction: Transaction,
  command: RecordRead,
  context: Context,
): Result<RecordedRead> {
  const { licenseKey, outcome, sentAt, policy } = command;
  if (outcome.outcome !== 'applied') {
    recordFailure(transaction, { ...command, outcome }, context);
    return done({ unexpected: null });
  }
  confirmTime(transaction, outcome.confirmedAt);
  if (!outcome.isCached) observeInstance(transaction, outcome.instance, context);
  const read = outcome.value;
  if (adoptSpelling(transaction, licenseKey, read.licenseKey, context) === 'known') {
    // This read did not hold the queues of the key: it only shows under which name the key is known.
    return done({ unexpected: null });
  }
  const before = transaction.snapshots.get(read.licenseKey);
  if (before !== null && outcome.isCached) {
    recordCached(transaction, before, { ...command, outcome }, context);
    return done({ unexpected: null });
  }
  const next = observe(transaction, { ...command, outcome }, before, context);
  const isPushing = protocolOf(transaction) === 'latchkey';
  const isOlder = before !== null && isOlderThanKnown(transaction, before, outcome.confirmedAt);
  if (isOlder && !(isPushing && !before.gone && before.license.enabled === read.enabled)) {
    recordOlder(transaction, before, { ...command, outcome }, context);
    return done({ unexpected: null });
  }
  if (before !== null && isPushing) {
    recordWhilePushing(transaction, before, isOlder ? { ...next, ...evidenceOf(before) } : next, context);
    return done({ unexpected: null });
  }
  if (before === null) {
    putSnapshot(transaction, next);
    return done({ unexpected: null });
  }
  if (before.gone) reopenOperations(transaction, read.licenseKey, context);
  const reconciliation = { snapshot: before, read, sentAt, policy };
  const counted = reconcileCounter(transaction, reconciliation, context);
  reconcileState(transaction, reconciliation, context);
  putSnapshot(transaction, {
    ...next,
    license: counted.reconciled ? read : { ...read, uses: before.license.uses },
    run: counted.reconciled ? next.run : before.run,
    readFirst: counted.reconciled ? false : before.readFirst,
    manyWriters: next.manyWriters || counted.unexpected !== null,
  });
  return done({ unexpected: counted.unexpected });
}

/**
 * Pushes settle every change by themselves, so a read reconciles nothing. If a push of the key is not answered, the read may
 * or may not contain its changes: the snapshot stays. A read of a followed key may be older than what the upstream said
 * about the key since, so a difference decides nothing: the agent follows the key again, and reads the key.
 */
function recordWhilePushing(
  transaction: Transaction,
  before: LicenseSnapshot,
  next: LicenseSnapshot,
  { now, monotonic }: Pick<Context, 'now' | 'monotonic'>,
): void {
  const { licenseKey } = next.license;
  // It is followed with the credential of the product under which it was found.
  if (before.productId !== next.productId) transaction.snapshots.setFollowed(licenseKey, false);
  if (before.gone) reopenOperations(transaction, licenseKey, { monotonic });
  const heads = (['counter', 'state'] as const).map((queue) =>
    transaction.operations.head(licenseKey, queue),
  );
  const isPushed = transaction.operations
    .shown(licenseKey)
    .some(
      ({ progress }) => progress.state === 'in_flight' || (progress.state === 'uncertain' && !progress.held),
    );
  const isInDispute = !isPushed && isFollowedOtherwise(transaction, { before, next, now });
  if (isInDispute) transaction.snapshots.setFollowed(licenseKey, false);
  const seen = isPushed || isInDispute ? { ...next, ...evidenceOf(before) } : next;
  putSnapshot(transaction, isInDispute ? { ...seen, refreshAt: monotonic } : seen);
  for (const head of heads) {
    // The read shows the key, so the changes need not wait any longer.
    if (head?.progress.state === 'pending' && head.nextAt !== null && head.nextAt > monotonic)
      scheduleHead(transaction, licenseKey, queueOfOperation(head), { at: monotonic, failures: 0 });
  }
}

/** What a snapshot knows of the upstream, and since when. */
function evidenceOf({
  license,
  confirmedAt,
  run,
}: LicenseSnapshot): Pick<LicenseSnapshot, 'license' | 'confirmedAt' | 'run'> {
  return { license, confirmedAt, run };
}

/** A read takes less than this, in ms: what the upstream said about followed keys before is older than the read. */
const longestReadMs = 3_600_000;

function isFollowedOtherwise(
  { snapshots, follows }: Transaction,
  { before, next, now }: { before: LicenseSnapshot; next: LicenseSnapshot; now: number },
): boolean {
  const { licenseKey, uses, enabled } = next.license;
  const isSame = before.license.uses === uses && before.license.enabled === enabled;
  if (isSame || before.gone || !snapshots.isFollowed(licenseKey)) return false;
  return now - (follows.get(next.productId)?.confirmedAt ?? 0) < longestReadMs;
}

/** The snapshot that the response makes; `before`: the snapshot so far. */
function observe(
  transaction: Transaction,
  { productId, outcome, sentAt, policy }: AnsweredRead,
  before: LicenseSnapshot | null,
  context: Context,
): LicenseSnapshot {
  const { value: license, confirmedAt, isCached } = outcome;
  const askedAt = before?.askedAt ?? context.now;
  const at = { ...context, fraction: context.random.fraction(), readResult: readResultOf(outcome) };
  return {
    license,
    local: { uses: license.uses, enabled: license.enabled, pending: 0 },
    productId,
    confirmedAt,
    run: isCached || sentAt < unknownHistoryUntil(transaction) ? noRun : currentRun(transaction),
    manyWriters: before?.manyWriters ?? false,
    missingSince: null,
    gone: false,
    readFirst: false,
    askedAt,
    refreshAt: nextRefreshAt({ askedAt }, policy, at),
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

/**
 * An upstream that is an agent was restored, and knows less than this store: its answer changes nothing. Before the key is
 * followed and its changes are pushed, the upstream must know what is known here.
 */
function recordOlder(
  transaction: Transaction,
  before: LicenseSnapshot,
  command: AnsweredRead,
  context: Context,
): void {
  const { policy } = command;
  const at = { ...context, fraction: context.random.fraction(), readResult: 'unanswered' } as const;
  const detail = 'the upstream answered with older data than is known here: it was restored';
  const failure = { detail, retryAfterMs: null, outage: false };
  postponeDueQueues(transaction, before.license.licenseKey, { ...command, failure }, context);
  const readFirst = before.readFirst || protocolOf(transaction) === 'latchkey';
  if (readFirst) transaction.snapshots.setFollowed(before.license.licenseKey, false);
  putSnapshot(transaction, { ...before, readFirst, refreshAt: nextRefreshAt(before, policy, at) });
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
  const isInQuestion =
    missing.gone && transaction.operations.queue(licenseKey, 'counter').some(mayHaveBeenApplied);
  const next = isInQuestion ? { ...missing, run: noRun } : missing;
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

/** The queues that were due needed this read, which brought nothing: they wait. */
function postponeDueQueues(
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
 * The upstream spells a license key otherwise than it was requested. Its spelling becomes the subject of snapshot and
 * queues, and the other one an alias: with two queues for one key, each would take the uses of the other for those of another program. Returns `known`
 * if the key was known under the upstream's spelling and this read did not hold its queues. (src/sync/README.md,
 * Queues)
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
  transaction.activations.changeKey(requestedKey, upstreamKey);
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
