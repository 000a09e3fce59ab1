import type { License } from '../../domain/license.ts';
import {
  nextRefreshAt,
  noRun,
  observeMissing,
  readAsOf,
  type LicenseSnapshot,
} from '../../domain/agent/license-snapshot.ts';
import { mayHaveBeenApplied } from '../../domain/outbox/operation.ts';
import { isMissing, isOutage, type Applied, type Outcome } from '../../domain/outbox/outcome.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { currentRun } from '../lifecycle/current-run.ts';
import { confirmTime } from '../lifecycle/clock-mark.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { putSnapshot, scheduleHead, waitAfterFailure, type Failure, type SyncPolicy } from './queue.ts';
import { type UnexpectedCount, refuseOperation, reopenOperations } from './record-answer.ts';
import { reconcileCounter, reconcileState } from './reconcile.ts';
import { observeInstance } from './upstream-state.ts';
import { maxAliases } from '../../domain/license-key.ts';
import { unknownHistoryUntil } from './sync-marks.ts';

type RecordRead = {
  licenseKey: string;
  productKey: string;
  outcome: Outcome<License>;
  /** `Clock.elapsed` when the read was sent: only one that came after a reconcile delay may reconcile what it guards. */
  sentAt: number;
  /**
   * Whether a 404 counts: not when another known key was answered 404 as well, which shows a gateway
   * without routes rather than a key that is gone.
   */
  isMissingConfirmed: boolean;
  policy: SyncPolicy;
};

export type RecordedRead = {
  /** A count that neither the last answer nor this agent's uncertain operations explain. */
  unexpected: UnexpectedCount | null;
};

type AnsweredRead = RecordRead & { outcome: Applied<License> };

/**
 * Records an answer to a read of a key, and reconciles by it what waited to be read back. The read had both
 * queues of the key to itself. (src/sync/README.md, After a lost response)
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
    // The queues of the key itself were not held by this read: it shows only under which name the key is known.
    return done({ unexpected: null });
  }
  const before = transaction.snapshots.get(read.licenseKey);
  if (before !== null && outcome.isCached) {
    recordCached(transaction, before, { ...command, outcome }, context);
    return done({ unexpected: null });
  }
  const seen = observe(transaction, { ...command, outcome }, before, context);
  if (before === null) {
    putSnapshot(transaction, seen);
    return done({ unexpected: null });
  }
  if (before.gone) reopenOperations(transaction, read.licenseKey, context);
  const reconciliation = { snapshot: before, read, sentAt, policy };
  const counted = reconcileCounter(transaction, reconciliation, context);
  reconcileState(transaction, reconciliation, context);
  putSnapshot(transaction, {
    ...seen,
    license: counted.reconciled ? read : { ...read, uses: before.license.uses },
    run: counted.reconciled ? seen.run : before.run,
    readFirst: counted.reconciled ? false : before.readFirst,
    manyWriters: seen.manyWriters || counted.unexpected !== null,
  });
  return done({ unexpected: counted.unexpected });
}

/** What the upstream has answered, as an snapshot; `before`: what was last seen of the key. */
function observe(
  transaction: Transaction,
  { productKey, outcome, sentAt, policy }: AnsweredRead,
  before: LicenseSnapshot | null,
  context: Context,
): LicenseSnapshot {
  const { value: license, confirmedAt, isCached } = outcome;
  const askedAt = before?.askedAt ?? context.now;
  const at = { ...context, draw: context.random.draw(), readAs: readAsOf(outcome) };
  return {
    license,
    local: { uses: license.uses, enabled: license.enabled, pending: 0 },
    productKey,
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
 * Records what a cache on the way answered: callers see what is newer than what they saw, but nothing is
 * reconciled by it or counted from it, so that what waited for this read waits on.
 */
function recordCached(
  transaction: Transaction,
  before: LicenseSnapshot,
  command: AnsweredRead,
  context: Context,
): void {
  const { outcome, policy } = command;
  const { licenseKey, uses } = before.license;
  // How old it is, is told by clocks that may be wrong: it can revoke a key, and never bring one back.
  const enabled = before.license.enabled && outcome.value.enabled;
  const isNewer = outcome.confirmedAt > before.confirmedAt && before.missingSince === null;
  const seen = isNewer
    ? { license: { ...outcome.value, licenseKey, uses, enabled }, confirmedAt: outcome.confirmedAt }
    : {};
  const readAs = isNewer ? 'known' : 'unanswered';
  const at = { ...context, draw: context.random.draw(), readAs } as const;
  const detail = 'a cache on the way answered, not the upstream';
  const failure = { detail, retryAfterMs: null, outage: false };
  postponeDueQueues(transaction, licenseKey, { ...command, failure }, context);
  putSnapshot(transaction, { ...before, ...seen, refreshAt: nextRefreshAt(before, policy, at) });
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
  const at = { ...context, draw: context.random.draw(), readAs: 'unanswered' } as const;
  transaction.snapshots.put({ ...snapshot, refreshAt: nextRefreshAt(snapshot, policy, at) });
  if (outcome.outcome === 'not_applied' && outcome.reason === 'unauthorized') return;
  const failure = { ...outcome, outage: isOutage(outcome) };
  postponeDueQueues(transaction, licenseKey, { ...command, failure }, context);
}

/**
 * A believed 404 about a key: its operations wait until reads have said so twice, far enough apart, and are
 * dead then, or held where they are uncertain.
 */
function recordMissing(
  transaction: Transaction,
  snapshot: LicenseSnapshot,
  command: FailedRead,
  context: Context,
): void {
  const { policy } = command;
  const { licenseKey } = snapshot.license;
  const missing = observeMissing(snapshot, context.elapsed, policy.goneMs);
  // What is held unread may be in the count with which the key comes back.
  const isInQuestion =
    missing.gone && transaction.operations.queue(licenseKey, 'counter').some(mayHaveBeenApplied);
  const seen = isInQuestion ? { ...missing, run: noRun } : missing;
  const detail = 'the upstream does not know this license key';
  if (seen.gone) {
    const { operations } = transaction;
    const waiting = [...operations.queue(licenseKey, 'counter'), ...operations.queue(licenseKey, 'state')];
    for (const operation of waiting.filter(({ progress }) => progress.state !== 'in_flight')) {
      refuseOperation(transaction, operation, { cause: 'missing', detail });
    }
  } else {
    const failure = { ...command.outcome, detail, outage: false };
    postponeDueQueues(transaction, licenseKey, { ...command, failure }, context);
  }
  const readAs = seen.gone ? 'gone' : 'unanswered';
  const at = { ...context, draw: context.random.draw(), readAs } as const;
  putSnapshot(transaction, { ...seen, refreshAt: nextRefreshAt(snapshot, policy, at) });
}

/** Lets the queues wait for which this read was made and brought nothing: those that were due. */
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
 * Takes note of how the upstream itself spells a license key that it was asked for in another way: its own
 * spelling is the one subject of snapshot and queues, every other is an alias. Two spellings with queues of
 * their own would count one use for the other. Gives `known` when the key was already known under its own
 * spelling, and this read was made beside its queues. (src/sync/README.md, Queues)
 */
function adoptSpelling(
  transaction: Transaction,
  asked: string,
  own: string,
  { now, elapsed }: Context,
): 'same' | 'known' | 'adopted' {
  if (asked === own) return 'same';
  const { snapshots, operations } = transaction;
  const underOwn = snapshots.get(own);
  const underAsked = snapshots.get(asked);
  if (underAsked?.license.licenseKey !== own) snapshots.addAlias(asked, own, { at: now, max: maxAliases });
  const isKnown = underOwn !== null && underOwn.license.licenseKey === own;
  if (underAsked === null || underAsked.license.licenseKey !== asked) return isKnown ? 'known' : 'adopted';
  // The key was known here under the other spelling alone, or under both.
  operations.moveToSubject(asked, own);
  transaction.history.respell(asked, own);
  snapshots.remove(asked);
  snapshots.moveAliases(asked, own);
  // Known under both, its count may contain what was counted under the other.
  const manyWriters = underOwn?.manyWriters === true || underAsked.manyWriters;
  const kept = isKnown
    ? { ...underOwn, run: noRun, manyWriters }
    : { ...underAsked, license: { ...underAsked.license, licenseKey: own } };
  putSnapshot(transaction, kept);
  for (const queue of ['counter', 'state'] as const) {
    const head = operations.head(own, queue);
    if (head !== null && head.progress.state !== 'in_flight')
      scheduleHead(transaction, own, queue, { at: elapsed });
  }
  return isKnown ? 'known' : 'adopted';
}
