import type { Refusal } from '../../domain/outbox/awaited.ts';
import { isHeld, type Operation } from '../../domain/outbox/operation.ts';
import type { NotApplied } from '../../domain/outbox/outcome.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { move, putSnapshot, queueOfOperation, scheduleHead, type SyncPolicy } from './queue.ts';
import { awaitNextAttempt } from './after-response.ts';
import { observeOtherStore } from './upstream-state.ts';

/* What it means that a Latchkey has not carried out a change that was sent under the id of its operation. */

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
