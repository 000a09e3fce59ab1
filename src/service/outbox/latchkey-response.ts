import {
  refreshAtAfterChange,
  readResultOf,
  type LicenseSnapshot,
} from '../../domain/agent/license-snapshot.ts';
import type { License } from '../../domain/license.ts';
import { noTerms } from '../../domain/terms.ts';
import { effectOnUses, type Operation, isHeld, mayHaveBeenApplied } from '../../domain/outbox/operation.ts';
import type { Applied, NotApplied } from '../../domain/outbox/outcome.ts';
import { confirmTime } from '../lifecycle/time-mark.ts';
import { currentRun } from '../lifecycle/run-count.ts';
import type { Context } from '../ports.ts';
import type { Transaction, Reader } from '../tables.ts';
import {
  move,
  postponeDueQueues,
  putSnapshot,
  queueOfOperation,
  scheduleHead,
  type SyncPolicy,
} from './queue.ts';
import { endSuperseded, olderAnswer, reopenOperations, awaitNextAttempt } from './after-response.ts';
import { reconcileState } from './reconcile.ts';
import { observeOlderStore, observeEpoch, observeOtherStore } from './upstream/change.ts';
import { isOlderThanKnown } from './upstream/former.ts';
import type { Refusal } from '../../domain/outbox/coupon-payload.ts';
import { epochNumber } from './upstream/identity.ts';

/*
 * What the answers of a Latchkey mean. It carries out each change that is sent under the id of its operation once, and repeats
 * its answer: after a lost answer the change is sent again. Its answers may arrive in another order than they were made: the
 * revision of a license orders them, within one history of the upstream. (src/sync/BETWEEN-LATCHKEYS.md, Ids of operations and Revisions)
 */

/** Records that the Latchkey has carried the change out. */
export function recordCarriedOut(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: { outcome: Applied<License>; policy: SyncPolicy },
  context: Context,
): void {
  const confirmedAt = confirmTime(transaction, outcome.confirmedAt, context);
  observeEpoch(transaction, outcome, context);
  // A disable sets a value: it does not matter how often it arrived.
  const certain = operation.kind === 'disable';
  // A gateway that removes the id from requests makes each of them count: what was sent so is never sent again.
  const isUnknown = queueOfOperation(operation) === 'counter' && outcome.appliedRevision === undefined;
  const carriedOut = isUnknown ? { ...operation, upstream: null } : operation;
  const delivered = move(transaction, carriedOut, { type: 'applied', certain, isUnknown, at: context.now });
  const queue = queueOfOperation(operation);
  if (queue === 'state') endSuperseded(transaction, delivered, context);
  if (operation.kind === 'disable') showOwnDisable(transaction, operation, outcome.appliedRevision);
  scheduleHead(transaction, operation.subject, queue, { at: context.monotonic });
  const before = transaction.snapshots.get(operation.subject);
  if (before === null) return;
  if (before.gone) reopenOperations(transaction, operation.subject, context);
  const said = { license: licenseIn(outcome), confirmedAt };
  if (isStale(transaction, before, said.license)) observeOlderStore(transaction);
  const seen = seenAfter(transaction, withCarriedOut(before, operation), said, context);
  const at = { ...context, fraction: context.random.fraction(), readResult: readResultOf(outcome) };
  const refreshAt = seen.readFirst ? context.monotonic : refreshAtAfterChange(before, policy, at);
  putSnapshot(transaction, { ...seen, refreshAt });
}

/** If the count in the answer cannot be used, the known count contains the change from now on. */
function withCarriedOut(before: LicenseSnapshot, { kind }: Operation): LicenseSnapshot {
  const { license } = before;
  return { ...before, license: { ...license, uses: Math.max(0, license.uses + effectOnUses(kind)) } };
}

/**
 * The callers of later enables have seen this disable. `revision`: at which it has turned the license off; undefined: another
 * disable had done so, which they have perhaps not seen.
 */
function showOwnDisable({ operations }: Transaction, disable: Operation, revision: number | undefined): void {
  if (revision === undefined) return;
  for (const later of operations.queue(disable.subject, 'state')) {
    if (later.kind !== 'enable' || later.seq < disable.seq || later.seenRevision === null) continue;
    operations.put({ ...later, seenRevision: Math.max(later.seenRevision, revision) });
  }
}

/** Records that the Latchkey has not carried the change out. */
export function recordRefusal(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: { outcome: NotApplied; policy: SyncPolicy },
  context: Context,
): void {
  const { detail: lastError, reason, code = '' } = outcome;
  // A 404 to a change proves nothing about the key: only reads do, so the next step is a read.
  if (reason === 'missing') readFirst(transaction, operation.subject);
  if (code === 'license_revoked') move(transaction, { ...operation, lastError }, { type: 'conflict' });
  // A gateway sends no code.
  else if (reason === 'refused' && code !== '' && !isUndecidable(code))
    move(transaction, { ...operation, lastError }, { type: 'refused', cause: 'refused' });
  else return recordUndecided(transaction, operation, { outcome, policy }, context);
  scheduleHead(transaction, operation.subject, queueOfOperation(operation), { at: context.monotonic });
  const snapshot = transaction.snapshots.get(operation.subject);
  if (snapshot !== null) putSnapshot(transaction, snapshot);
}

function readFirst({ snapshots }: Transaction, licenseKey: string): void {
  const snapshot = snapshots.get(licenseKey);
  if (snapshot !== null) snapshots.put({ ...snapshot, readFirst: true });
}

/** Nothing can say any more whether an earlier attempt was carried out, or the id belongs to another change. */
const undecidable: ReadonlySet<string> = new Set(['too_old_to_know', 'idempotency_key_reused']);

export function isUndecidable(code: string | undefined): boolean {
  return code !== undefined && undecidable.has(code);
}

/** The refusal of a change of coupons; null: the upstream has not decided about the change. */
export function refusalIn({ reason, code, reasons }: NotApplied): Refusal | null {
  if (code === 'other_store' || isUndecidable(code)) return null;
  // A gateway sends no code.
  const isDecided = (reason === 'refused' || reason === 'rejected') && code !== undefined;
  return isDecided ? { code, ...(reasons !== undefined && { reasons }) } : null;
}

/** Makes a change wait that the upstream has not decided about, for its next attempt or for a person. */
export function recordUndecided(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: { outcome: NotApplied; policy: SyncPolicy },
  context: Context,
): void {
  const { code = '', detail } = outcome;
  const waiting = move(transaction, { ...operation, lastError: detail }, { type: 'not_applied' });
  if (isUndecidable(code)) {
    move(transaction, waiting, { type: 'hold' });
    scheduleHead(transaction, operation.subject, queueOfOperation(operation), { at: context.monotonic });
    const snapshot = transaction.snapshots.get(operation.subject);
    if (snapshot !== null) putSnapshot(transaction, snapshot);
    return;
  }
  if (code === 'other_store') {
    observeOtherStore(transaction, outcome.epoch, context);
    if (isHeld(transaction.operations.get(waiting.id) ?? waiting)) return;
  }
  awaitNextAttempt(transaction, waiting, { outcome, policy }, context);
}

/** A Latchkey carries each change out once under its id, so a read decides about none but an enable without a revision. */
export function recordReadOfLatchkey(
  transaction: Transaction,
  { before, next }: { before: LicenseSnapshot; next: LicenseSnapshot },
  { outcome, sentAt, policy }: { outcome: Applied<License>; sentAt: number; policy: SyncPolicy },
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
    postponeDueQueues(transaction, licenseKey, { sentAt, policy, failure: olderAnswer }, context);
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

const second = 1_000;

/** The license in an answer, with its revision. */
export function licenseIn({ value, revision }: Pick<Applied<License>, 'value' | 'revision'>): License {
  return revision === undefined ? value : { ...value, revision };
}

/** Whether an answer is older than what is known, within one history of the upstream. */
export function isStale(reader: Reader, { epoch, license }: LicenseSnapshot, said: License): boolean {
  const [known, revision] = [license.revision, said.revision];
  return epoch === epochNumber(reader) && known !== undefined && revision !== undefined && revision < known;
}

/**
 * The snapshot after an answer of a Latchkey that is not stale. If the answer is from another history, older than what is known,
 * and says otherwise, only a read later can decide: then `readFirst` is set.
 */
export function seenAfter(
  reader: Reader,
  before: LicenseSnapshot,
  { license: value, confirmedAt }: { license: License; confirmedAt: number },
  { monotonic }: Pick<Context, 'monotonic'>,
): LicenseSnapshot {
  const epoch = epochNumber(reader);
  const isOtherwise = before.epoch !== epoch && value.enabled !== before.license.enabled;
  // Dates are in whole seconds. What may be older must not undo a revocation.
  const surelySince = value.enabled ? confirmedAt - second : confirmedAt;
  if (isOtherwise && isOlderThanKnown(reader, before, surelySince))
    return { ...before, readFirst: true, refreshAt: monotonic };
  const { licenseKey, uses } = before.license;
  return {
    ...before,
    license: {
      // Members that only a response to a read has are kept.
      ...before.license,
      ...noTerms,
      ...value,
      licenseKey,
      uses: mayCountTwice(reader, licenseKey) ? uses : value.uses,
    },
    epoch,
    confirmedAt: Math.max(before.confirmedAt, confirmedAt),
    run: currentRun(reader),
    missingSince: null,
    gone: false,
    readFirst: false,
  };
}

/** The count in the answer may contain a change that is shown as pending. Its own answer brings the count. */
function mayCountTwice({ operations }: Reader, licenseKey: string): boolean {
  const head = operations.head(licenseKey, 'counter');
  return head !== null && (head.progress.state === 'in_flight' || mayHaveBeenApplied(head));
}
