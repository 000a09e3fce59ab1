import { defaultAccountId } from '../../../domain/access/principal.ts';
import {
  endAwait,
  isAwaited,
  passRefusalOn,
  refusalOf,
  refuseAsUpstream,
  withRefusal,
  type Refusal,
  provisionalCoupon,
} from '../../../domain/outbox/coupon-payload.ts';
import { isUnfinished, mayHaveBeenApplied, type Operation } from '../../../domain/outbox/operation.ts';
import type { NotApplied } from '../../../domain/outbox/outcome.ts';
import { done, type Result } from '../../../domain/problem/problem.ts';
import type { MirroredCoupon } from '../../agent/tables.ts';
import { confirmTime } from '../../lifecycle/time-mark.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import { isUndecidable, recordUndecided, refusalIn } from '../latchkey-response.ts';
import { adoptCoupon, adoptOnceListed, isKnownCode, separateCoupon } from './provisional.ts';
import { move, scheduleHead, waitAfterFailure, type SyncPolicy } from '../queue.ts';

/* Creations of coupons that are sent to a Latchkey under their ids. Those for another upstream are in creation.ts. */

/** The upstream has the coupon: from now on, the provisional id means the coupon of the upstream. */
export function recordCreationAtLatchkey(
  transaction: Transaction,
  operation: Operation,
  { coupon, confirmedAt: dated }: { coupon: MirroredCoupon['coupon']; confirmedAt: number },
  { now, monotonic }: Context,
): void {
  const confirmedAt = confirmTime(transaction, dated, { now });
  const provisional = provisionalCoupon(operation);
  // The provisional id of an agent in the middle means nothing here.
  if (coupon.id < 0) adoptOnceListed(transaction, provisional);
  else adoptAgain(transaction, provisional.id, { coupon, confirmedAt });
  move(transaction, endAwait(operation), { type: 'applied', certain: true, at: now });
  scheduleHead(transaction, operation.subject, 'coupon', { at: monotonic });
}

/** An upstream that was restored may give the coupon another id than before. */
function adoptAgain(transaction: Transaction, provisionalId: number, created: MirroredCoupon): void {
  const { mirror, redemptions } = transaction;
  const { id, code } = created.coupon;
  const isTaken = (mirror.get(id)?.coupon.code ?? code) !== code;
  if (isTaken) separateCoupon(transaction, id);
  const before = mirror.get(provisionalId)?.coupon;
  if (before !== undefined && before.id > 0 && before.id !== id) {
    redemptions.renumberCoupon(defaultAccountId, before.id, id);
    if (before.code === code) mirror.remove(before.id);
  }
  // The upstream may repeat an older answer: what its list has shown since is newer.
  const shown = mirror.get(id);
  adoptCoupon(transaction, provisionalId, shown?.coupon.code === code ? shown : created);
}

/** The upstream has not created the coupon. */
export function recordRefusalOfLatchkey(
  transaction: Transaction,
  operation: Operation,
  { outcome, policy }: { outcome: NotApplied; policy: SyncPolicy },
  context: Context,
): void {
  const refusal = refusalIn(outcome) ?? refusalHere(transaction, operation, outcome);
  if (refusal === null) {
    recordUndecided(transaction, operation, { outcome, policy }, context);
    return;
  }
  const { mirror } = transaction;
  const { id } = provisionalCoupon(operation);
  const { detail: lastError } = outcome;
  if (isAwaited(operation)) {
    mirror.remove(id);
    move(transaction, { ...withRefusal(operation, refusal), lastError }, { type: 'cancel', at: context.now });
  } else if (refusal.code === 'coupon_code_taken') {
    // The upstream may have forgotten that this operation has created the coupon: its list says so.
    move(transaction, { ...operation, lastError }, { type: 'ambiguous' });
    const wait = waitAfterFailure(operation, { ...outcome, outage: false }, policy, context);
    scheduleHead(transaction, operation.subject, 'coupon', wait);
    return;
  } else {
    const refused = move(transaction, { ...operation, lastError }, { type: 'refused', cause: 'refused' });
    // A held creation may have been applied: its code stays taken.
    if (refused.progress.state === 'dead') mirror.remove(id);
  }
  scheduleHead(transaction, operation.subject, 'coupon', { at: context.monotonic });
}

/** While the upstream cannot be asked, a code that it has shown is taken; null: the creation waits. */
function refusalHere(transaction: Transaction, operation: Operation, { code }: NotApplied): Refusal | null {
  if (code === 'other_store' || isUndecidable(code)) return null;
  const isUnsent = isAwaited(operation) && !mayHaveBeenApplied(operation);
  const isTaken = isUnsent && isKnownCode(transaction, provisionalCoupon(operation));
  return isTaken ? { code: 'coupon_code_taken' } : null;
}

/** `isAgent`: the caller is an agent below. */
type AnswerCoupon = { operationId: string; queued: MirroredCoupon; isAgent: boolean };

/** What the caller is answered after its wait: the coupon as the upstream has it, or with its provisional id. */
export function answerCoupon(
  { operations, mirror }: Transaction,
  { operationId, queued, isAgent }: AnswerCoupon,
): Result<MirroredCoupon> {
  const operation = operations.get(operationId);
  const refusal = operation === null ? null : refusalOf(operation);
  if (refusal !== null) return isAgent ? refuseAsUpstream(refusal) : passRefusalOn(refusal);
  if (operation !== null && isUnfinished(operation)) operations.put(endAwait(operation));
  return done(mirror.get(queued.coupon.id) ?? queued);
}
