import { countApplied } from '../../domain/outbox/delivery.ts';
import type { License } from '../../domain/license.ts';
import { isCountUncertain, type LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import { mayHaveBeenApplied, type Operation } from '../../domain/outbox/operation.ts';
import { isOfEarlierRun, lastSeqBefore } from '../lifecycle/run-count.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { nextReconcileAt, move, scheduleHead, waitAfterFailure, type SyncPolicy } from './queue.ts';
import { endSuperseded, refuseOperation } from './after-response.ts';
import { boundUpstream } from './upstream/identity.ts';
import { isOfOtherUpstream } from './upstream/former.ts';

/** A count that this agent's own operations do not explain. */
export type UnexpectedCount = { expected: number; got: number };

/** A read of a key, with the snapshot before it. */
type Reconciliation = { snapshot: LicenseSnapshot; read: License; sentAt: number; policy: SyncPolicy };

type ReconciledCounter = {
  /** Whether the count may be a base: no request that the count may contain is in flight or uncertain. */
  reconciled: boolean;
  /** A count that neither the last response nor the uncertain operations explain. */
  unexpected: UnexpectedCount | null;
};

const unreconciled: ReconciledCounter = { reconciled: false, unexpected: null };

/**
 * Reconciles the uncertain counter operations with the count that was read (src/sync/PLAIN-UPSTREAM.md, After a lost
 * response).
 */
export function reconcileCounter(
  transaction: Transaction,
  reconciliation: Reconciliation,
  context: Context,
): ReconciledCounter {
  const { snapshot, read, sentAt, policy } = reconciliation;
  const { operations } = transaction;
  const subject = snapshot.license.licenseKey;
  if (nextReconcileAt(transaction, { subject, queue: 'counter', asDisable: false }, sentAt) !== null)
    return unreconciled;
  const head = operations.head(subject, 'counter');
  const uncertain = operations.uncertain(subject, 'counter');
  // A base of another upstream is ignored.
  const isSentHere = uncertain[0]?.upstream === boundUpstream(transaction);
  const isForeign = !isSentHere && isOfOtherUpstream(transaction, snapshot);
  const base = isForeign ? read.uses : (baseOf(uncertain) ?? snapshot.license.uses);
  const applied = countApplied(base, uncertain, read.uses);
  const isOnlyWriter = policy.writers === 'single' && !snapshot.manyWriters;
  if (applied === null && isOfEarlierRun(transaction, snapshot)) {
    const seen = { readUses: read.uses, isOnlyWriter, lastSeq: lastSeqBefore(transaction) };
    if (doubtEarlier(transaction, snapshot, seen, context.monotonic + policy.reconcileAfterMs))
      return unreconciled;
  }
  if (uncertain.length > 0)
    reconcileUncertain(transaction, uncertain, { ...reconciliation, applied, isOnlyWriter }, context);
  endNeedlessDecrease(transaction, reconciliation, context);
  scheduleNext(transaction, subject, head, context);
  const isExplained = applied !== null || isCountUncertain(snapshot);
  return { reconciled: true, unexpected: isExplained ? null : { expected: base, got: read.uses } };
}

const uncounted = 'the upstream says that the license key is disabled, and counts no use of it';

/**
 * The key is disabled, and the response does not show its count: uses that were not sent would be refused. What may have
 * been counted waits for a response with the count.
 */
export function refuseUses(
  transaction: Transaction,
  { snapshot, policy }: Reconciliation,
  context: Context,
): ReconciledCounter {
  const { operations } = transaction;
  const subject = snapshot.license.licenseKey;
  for (const operation of operations.queue(subject, 'counter')) {
    const isUnsent = operation.progress.state === 'pending' && !mayHaveBeenApplied(operation);
    if (operation.kind === 'usage' && isUnsent)
      refuseOperation(transaction, operation, { cause: 'refused', detail: uncounted });
  }
  const head = operations.head(subject, 'counter');
  if (head !== null && head.progress.state !== 'in_flight') {
    const failure = { detail: uncounted, retryAfterMs: null, outage: false };
    scheduleHead(transaction, subject, 'counter', waitAfterFailure(head, failure, policy, context));
  }
  return unreconciled;
}

const unproven =
  'it may have been applied: another writer, an unknown history or an earlier attempt could explain the count as well';

/** The first operations that explain the count were applied; the rest are sent again. */
function reconcileUncertain(
  transaction: Transaction,
  uncertain: readonly Operation[],
  { policy, applied, isOnlyWriter }: Reconciliation & { applied: number | null; isOnlyWriter: boolean },
  { now }: Context,
): void {
  // If an unknown history may have delivered one of them, the count proves nothing.
  const certain = applied !== null && isOnlyWriter && !uncertain.some(isMaybeApplied);
  for (const [index, operation] of uncertain.entries()) {
    if (index >= (applied ?? uncertain.length)) {
      move(transaction, operation, { type: 'read_absent', certain });
    } else if (!certain && policy.onUncertain === 'hold') {
      move(transaction, { ...operation, lastError: unproven }, { type: 'hold' });
    } else {
      move(transaction, operation, { type: 'read_applied', certain, at: now });
    }
  }
}

function isMaybeApplied({ progress }: Operation): boolean {
  return progress.state === 'uncertain' && progress.maybeApplied;
}

/** A read made for this attempt shows 0: a decrease at the head has nothing to take back. */
function endNeedlessDecrease(
  transaction: Transaction,
  { snapshot, read, sentAt }: Reconciliation,
  { now }: Context,
): void {
  const head = transaction.operations.head(snapshot.license.licenseKey, 'counter');
  if (head === null || head.nextAt === null || sentAt < head.nextAt || read.uses > 0) return;
  if (head.kind === 'decrease' && head.progress.state === 'pending') {
    move(transaction, { ...head, upstream: null }, { type: 'needless', at: now });
  }
}

/** Makes the head due now, unless it is the same operation as before and still waits. */
function scheduleNext(
  transaction: Transaction,
  subject: string,
  before: Operation | null,
  { monotonic }: Context,
): void {
  const head = transaction.operations.head(subject, 'counter');
  const isWaiting =
    head !== null && head.id === before?.id && head.nextAt !== null && head.nextAt > monotonic;
  if (!isWaiting) scheduleHead(transaction, subject, 'counter', { at: monotonic });
}

/** Reconciles the head of a key's state queue with a read (src/sync/README.md, Queues). */
export function reconcileState(
  transaction: Transaction,
  { snapshot, read, sentAt }: Reconciliation,
  context: Context,
): void {
  const { operations } = transaction;
  const subject = snapshot.license.licenseKey;
  const isDelayed = (asDisable: boolean): boolean =>
    nextReconcileAt(transaction, { subject, queue: 'state', asDisable }, sentAt) !== null;
  if (read.enabled && !isDelayed(false)) endHeldEnables(transaction, subject, context);
  const head = operations.head(subject, 'state');
  if (head === null || head.progress.state === 'in_flight') return;
  if (isDelayed(head.kind === 'disable')) return;
  const isAsWanted = read.enabled === (head.kind === 'enable');
  const isReconciled =
    head.progress.state === 'uncertain'
      ? reconcileUncertainState(transaction, head, isAsWanted, context)
      : reconcilePendingState(transaction, head, isAsWanted, context);
  const wasDue = head.nextAt !== null && head.nextAt <= sentAt;
  if (isReconciled || wasDue) scheduleHead(transaction, subject, 'state', { at: context.monotonic });
}

/**
 * The key is enabled, as a held enable asked for. An agent above may have delivered it late, or another writer enabled
 * the key. A person has nothing left to decide.
 */
function endHeldEnables(transaction: Transaction, subject: string, { now }: Context): void {
  const held = transaction.operations.held(subject, 'state').filter(({ kind }) => kind === 'enable');
  for (const enable of held) move(transaction, enable, { type: 'read_applied', certain: false, at: now });
}

function reconcileUncertainState(
  transaction: Transaction,
  head: Operation,
  isAsWanted: boolean,
  context: Context,
): boolean {
  if (isAsWanted) {
    move(transaction, head, { type: 'read_applied', certain: true, at: context.now });
    endSuperseded(transaction, head, context);
  } else if (head.kind === 'enable') {
    // The enable never arrived, or the key was disabled since. Sending it again could undo that revocation.
    const lastError =
      'the response was lost and the key is disabled: the enable never arrived, or the key was disabled since';
    move(transaction, { ...head, lastError }, { type: 'hold' });
  } else {
    move(transaction, head, { type: 'read_absent', certain: true });
  }
  return true;
}

/** An enable requested while the key was seen enabled does not undo a later disable. */
function reconcilePendingState(
  transaction: Transaction,
  head: Operation,
  isAsWanted: boolean,
  context: Context,
): boolean {
  if (head.kind !== 'enable') return false;
  if (isAsWanted) {
    move(transaction, { ...head, upstream: null }, { type: 'needless', at: context.now });
    endSuperseded(transaction, head, context);
    return true;
  }
  if (head.seenEnabled !== true) return false;
  const lastError = 'the key was disabled after it was seen enabled here: a revocation wins';
  move(transaction, { ...head, lastError }, { type: 'conflict' });
  return true;
}

/**
 * The first read after a start shows a count that the uncertain operations do not explain. If this agent is the only
 * writer, and all operations from before the start explain it together, a history that this store does not know (a
 * restored snapshot of the disk) may have delivered them: they become uncertain and are read back at `reconcileAt`.
 * Otherwise another writer changed the count: they are sent, and end inferred. Returns whether they became uncertain.
 */
function doubtEarlier(
  transaction: Transaction,
  snapshot: LicenseSnapshot,
  seen: { readUses: number; isOnlyWriter: boolean; lastSeq: number },
  reconcileAt: number,
): boolean {
  const { licenseKey, uses } = snapshot.license;
  const earlier = transaction.operations
    .queue(licenseKey, 'counter')
    .filter(({ seq }) => seq <= seen.lastSeq);
  const pending = earlier.filter(({ progress }) => progress.state === 'pending');
  const base = baseOf(earlier) ?? uses;
  const explains = countApplied(base, earlier, seen.readUses) !== null;
  const isOurs = seen.isOnlyWriter && explains && pending.length > 0;
  for (const operation of pending) {
    if (isOurs) {
      const delayed = { ...operation, reconcileAt: reconcileAt };
      move(transaction, delayed, { type: 'doubt', baseUses: uses, lasting: true });
    } else {
      move(transaction, operation, { type: 'resend' });
    }
  }
  if (isOurs) {
    const lastError = 'the upstream’s count changed while this process was stopped';
    scheduleHead(transaction, licenseKey, 'counter', { at: reconcileAt, lastError });
  }
  return isOurs;
}

/** The count on which the first of the uncertain operations was sent, if known. */
function baseOf([first]: readonly Operation[]): number | null {
  return first?.progress.state === 'uncertain' ? first.progress.baseUses : null;
}
