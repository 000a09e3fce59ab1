import { type License, maxAliases } from '../../domain/license.ts';
import {
  nextRefreshAt,
  noRun,
  observeMissing,
  readResultOf,
  type LicenseSnapshot,
} from '../../domain/agent/license-snapshot.ts';
import { mayHaveBeenApplied, type Operation } from '../../domain/outbox/operation.ts';
import { isMissing, isOutage, type Applied, type Outcome } from '../../domain/outbox/outcome.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { currentRun } from '../lifecycle/run-count.ts';
import { confirmTime } from '../lifecycle/time-mark.ts';
import type { Context } from '../ports.ts';
import { features } from '../../features.ts';
import type { Transaction } from '../tables.ts';
import { putSnapshot, scheduleHead, waitAfterFailure, type Failure, type SyncPolicy } from './queue.ts';
import { unknownHistoryUntil } from './upstream-waits.ts';
import { refuseOperation, reopenOperations } from './after-response.ts';
import type { UnexpectedCount } from './record-response.ts';
import { reconcileCounter, reconcileState, refuseUses } from './reconcile.ts';
import { isStale, licenseIn, seenAfter } from './latchkey-response.ts';
import { epochNumber, isLatchkey } from './upstream-epoch.ts';
import { isOlderThanKnown, observeOlderStore, observeEpoch } from './upstream-state.ts';

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
  const { licenseKey, outcome: answer, sentAt, policy } = command;
  if (answer.outcome !== 'applied') {
    recordFailure(transaction, { ...command, outcome: answer }, context);
    return done({ unexpected: null });
  }
  const confirmedAt = confirmTime(transaction, answer.confirmedAt, context);
  if (!answer.isCached) observeEpoch(transaction, answer, context);
  if (adoptSpelling(transaction, licenseKey, answer.value.licenseKey, context) === 'known') {
    // This read did not hold the queues of the key: it only shows under which name the key is known.
    return done({ unexpected: null });
  }
  const before = transaction.snapshots.get(answer.value.licenseKey);
  const read = withKnown(answer, before);
  const outcome = { ...answer, confirmedAt, value: read };
  if (before !== null && outcome.isCached) {
    recordCached(transaction, before, { ...command, outcome }, context);
    return done({ unexpected: null });
  }
  const next = observe(transaction, { ...command, outcome }, before, context);
  if (before !== null && isLatchkey(transaction) && !hasUncertain(transaction, read.licenseKey)) {
    recordOfLatchkey(transaction, { before, next }, { ...command, outcome }, context);
    return done({ unexpected: null });
  }
  if (before !== null && isOlderThanKnown(transaction, before, outcome.confirmedAt)) {
    recordOlder(transaction, before, { ...command, outcome }, context);
    return done({ unexpected: null });
  }
  if (before === null) {
    putSnapshot(transaction, next);
    return done({ unexpected: null });
  }
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
  return done({ unexpected: counted.unexpected });
}

/** A response that shows only whether the key is enabled leaves the rest as it was known. */
function withKnown({ value, shows }: Applied<License>, before: LicenseSnapshot | null): License {
  if (shows !== 'enabled' || before === null) return value;
  const { enabled, extra } = value;
  return { ...before.license, enabled, ...(extra !== undefined && { extra }) };
}

/** What was sent without an id is in doubt: the count and the state that were read decide. */
function hasUncertain({ operations }: Transaction, licenseKey: string): boolean {
  const queues = ['counter', 'state'] as const;
  return queues.some((queue) => operations.uncertain(licenseKey, queue).length > 0);
}

/** A Latchkey carries each change out once under its id, so a read decides about none but an enable without a revision. */
function recordOfLatchkey(
  transaction: Transaction,
  { before, next }: { before: LicenseSnapshot; next: LicenseSnapshot },
  { outcome, sentAt, policy }: AnsweredRead,
  context: Context,
): void {
  const { licenseKey } = next.license;
  const { operations, snapshots } = transaction;
  // It is followed with the credential of the product under which it was found.
  if (before.productId !== next.productId) snapshots.setFollowed(licenseKey, false);
  if (before.gone) reopenOperations(transaction, licenseKey, context);
  const said = { license: licenseIn(outcome), confirmedAt: outcome.confirmedAt };
  if (isStale(transaction, before, said.license)) observeOlderStore(transaction);
  const seen = seenAfter(transaction, before, said, context);
  if (seen.readFirst) snapshots.setFollowed(licenseKey, false);
  else if (needsState(operations.head(licenseKey, 'state')))
    reconcileState(transaction, { snapshot: before, read: outcome.value, sentAt, policy }, context);
  putSnapshot(transaction, { ...seen, productId: next.productId, refreshAt: next.refreshAt });
  if (seen.readFirst) {
    postponeDueQueues(transaction, licenseKey, { sentAt, policy, failure: older }, context);
    return;
  }
  for (const queue of ['counter', 'state'] as const) {
    const head = operations.head(licenseKey, queue);
    // The read shows the key, so the changes need not wait any longer.
    if (head?.progress.state === 'pending' && head.nextAt !== null && head.nextAt > context.monotonic)
      scheduleHead(transaction, licenseKey, queue, { at: context.monotonic, failures: 0 });
  }
}

function needsState(head: Operation | null): boolean {
  return head?.kind === 'enable' && head.seenRevision === null && !mayHaveBeenApplied(head);
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

const older: Failure = {
  detail: 'the upstream answered with older data than is known here: it was restored',
  retryAfterMs: null,
  outage: false,
};

/** An upstream that is an agent was restored, and knows less than this store: its answer changes nothing. */
function recordOlder(
  transaction: Transaction,
  before: LicenseSnapshot,
  command: AnsweredRead,
  context: Context,
): void {
  const { policy } = command;
  const at = { ...context, fraction: context.random.fraction(), readResult: 'unanswered' } as const;
  postponeDueQueues(transaction, before.license.licenseKey, { ...command, failure: older }, context);
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
