import type { Operation } from '../../../domain/outbox/operation.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import { fencedUntil, move, scheduleHead } from '../lane.ts';
import { endRefusedDisables } from '../delivery/refusal.ts';
import type { Settling } from './settle-counter.ts';

/** Settles the head of a key's state lane by a read. (src/sync/README.md, Lanes) */
export function settleState(
  transaction: Transaction,
  { observation, read, sentAt }: Settling,
  context: Context,
): void {
  const { operations } = transaction;
  const subject = observation.license.licenseKey;
  const head = operations.head(subject, 'state');
  if (head === null || head.progress.state === 'in_flight') return;
  const asDisable = head.kind === 'disable';
  if (fencedUntil(transaction, { subject, lane: 'state', asDisable }, sentAt) !== null) return;
  const isAsWanted = read.enabled === (head.kind === 'enable');
  const isSettled =
    head.progress.state === 'uncertain'
      ? settleDoubt(transaction, head, isAsWanted, context)
      : settlePending(transaction, head, isAsWanted, context);
  const wasDue = head.nextAt !== null && head.nextAt <= sentAt;
  if (isSettled || wasDue) scheduleHead(transaction, subject, 'state', { at: context.steady });
}

function settleDoubt(
  transaction: Transaction,
  head: Operation,
  isAsWanted: boolean,
  context: Context,
): boolean {
  if (isAsWanted) {
    move(transaction, head, { type: 'read_applied', certain: true, at: context.now });
    if (head.kind === 'enable') endRefusedDisables(transaction, head, context);
  } else if (head.kind === 'enable') {
    // It never arrived, or it did and the key was disabled since: a revocation is not undone by repeating it.
    const lastError = 'the answer was lost and the key is disabled: it never arrived, or was revoked since';
    move(transaction, { ...head, lastError }, { type: 'hold' });
  } else {
    move(transaction, head, { type: 'read_absent', certain: true });
  }
  return true;
}

/** An enable that was asked for on a key that was seen enabled does not undo a disable that came since. */
function settlePending(
  transaction: Transaction,
  head: Operation,
  isAsWanted: boolean,
  context: Context,
): boolean {
  if (head.kind !== 'enable') return false;
  if (isAsWanted) {
    move(transaction, head, { type: 'needless', at: context.now });
    endRefusedDisables(transaction, head, context);
    return true;
  }
  if (head.seenEnabled !== true) return false;
  const lastError = 'the key was disabled after it was seen enabled here: a revocation wins';
  move(transaction, { ...head, lastError }, { type: 'conflict' });
  return true;
}
