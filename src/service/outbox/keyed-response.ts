import {
  refreshAtAfterChange,
  readResultOf,
  type LicenseSnapshot,
} from '../../domain/agent/license-snapshot.ts';
import type { License } from '../../domain/license.ts';
import { effectOnUses, type Operation } from '../../domain/outbox/operation.ts';
import type { Applied, NotApplied } from '../../domain/outbox/outcome.ts';
import { confirmTime } from '../lifecycle/current-run.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { move, putSnapshot, queueOfOperation, scheduleHead, type SyncPolicy } from './queue.ts';
import { endSuperseded, reopenOperations } from './after-response.ts';
import { isUndecidable, recordUndecided } from './keyed-refusal.ts';
import { isStale, licenseIn, seenAfter } from './seen-license.ts';
import { observeOlderStore, observeEpoch } from './upstream-state.ts';

/*
 * The answer of a Latchkey to a change of a license that was sent under the id of its operation. The Latchkey carries the
 * change out once and repeats its answer, so a lost answer is no doubt: the change is sent again.
 * (src/sync/README.md, Between Latchkeys)
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
