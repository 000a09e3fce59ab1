import type { Operation } from '../../../domain/outbox/operation.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import { fencedUntil, move, scheduleHead } from '../lane.ts';
import { endOvertaken } from '../delivery/refusal.ts';
import type { Settling } from './settle-counter.ts';

/** Settles the head of a key's state lane by a read. (src/sync/README.md, Queues) */
export function settleState(
  transaction: Transaction,
  { observation, read, sentAt }: Settling,
  context: Context,
): void {
  const { operations } = transaction;
  const subject = observation.license.licenseKey;
  const isFenced = (asDisable: boolean): boolean =>
    fencedUntil(transaction, { subject, lane: 'state', asDisable }, sentAt) !== null;
  if (read.enabled && !isFenced(false)) endHeldEnables(transaction, subject, context);
  const head = operations.head(subject, 'state');
  if (head === null || head.progress.state === 'in_flight') return;
  if (isFenced(head.kind === 'disable')) return;
  const isAsWanted = read.enabled === (head.kind === 'enable');
  const isSettled =
    head.progress.state === 'uncertain'
      ? settleDoubt(transaction, head, isAsWanted, context)
      : settlePending(transaction, head, isAsWanted, context);
  const wasDue = head.nextAt !== null && head.nextAt <= sentAt;
  if (isSettled || wasDue) scheduleHead(transaction, subject, 'state', { at: context.steady });
}

/**
 * The key is enabled, as was asked for: by one that is held, which an agent above may have had to pass on first, or by
 * somebody else. A person has nothing left to decide.
 */
function endHeldEnables(transaction: Transaction, subject: string, { now }: Context): void {
  const held = transaction.operations.held(subject, 'state').filter(({ kind }) => kind === 'enable');
  for (const enable of held) move(transaction, enable, { type: 'read_applied', certain: false, at: now });
}

function settleDoubt(
  transaction: Transaction,
  head: Operation,
  isAsWanted: boolean,
  context: Context,
): boolean {
  if (isAsWanted) {
    move(transaction, head, { type: 'read_applied', certain: true, at: context.now });
    endOvertaken(transaction, head, context);
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
    endOvertaken(transaction, head, context);
    return true;
  }
  if (head.seenEnabled !== true) return false;
  const lastError = 'the key was disabled after it was seen enabled here: a revocation wins';
  move(transaction, { ...head, lastError }, { type: 'conflict' });
  return true;
}
