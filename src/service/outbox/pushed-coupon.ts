import { defaultAccountId } from '../../domain/access/principal.ts';
import { isUnfinished, type Operation } from '../../domain/outbox/operation.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type { PushedResult } from '../../domain/sync/push.ts';
import type { MirroredCoupon } from '../agent/tables.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { endAwait, isAwaited, passRefusalOn, refusalOf, withRefusal } from '../../domain/outbox/awaited.ts';
import { provisionalCoupon } from '../../domain/outbox/coupon-payload.ts';
import { adoptCoupon, adoptOnceListed, separateCoupon } from './provisional-coupon.ts';
import { move } from './queue.ts';
import { refuseOperation } from './record-response.ts';

/* Creations of coupons that a push sends. What the plain protocol says about them is in coupon-creation.ts. */

type Applied = Extract<PushedResult, { outcome: 'applied' }>;

/** The upstream has the coupon: from now on, the provisional id means the coupon of the upstream. */
export function recordPushedCoupon(
  transaction: Transaction,
  operation: Operation,
  { couponId }: Omit<Applied, 'outcome'>,
  { now }: Context,
): void {
  const coupon = provisionalCoupon(operation);
  if (couponId === undefined) adoptOnceListed(transaction, coupon);
  else adoptAgain(transaction, coupon.id, { coupon: { ...coupon, id: couponId }, confirmedAt: now });
  move(transaction, operation, { type: 'applied', certain: true, at: now });
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
  adoptCoupon(transaction, provisionalId, created);
}

/** The upstream has refused the coupon, or has another one with its code. */
export function recordCouponRefused(
  transaction: Transaction,
  operation: Operation,
  { outcome, code }: Exclude<PushedResult, Applied>,
  { now }: Context,
): void {
  const { mirror } = transaction;
  const { id } = provisionalCoupon(operation);
  if (isAwaited(operation)) {
    mirror.remove(id);
    move(transaction, withRefusal(operation, { code }), { type: 'cancel', at: now });
  } else if (outcome === 'conflicted') {
    mirror.remove(id);
    const lastError = 'the upstream has another coupon with this code';
    move(transaction, { ...operation, lastError }, { type: 'conflict' });
  } else {
    const detail = `the upstream answered ${code}`;
    const refused = refuseOperation(transaction, operation, { cause: 'refused', detail });
    // A held creation may have been applied: its code stays taken.
    if (refused.progress.state === 'dead') mirror.remove(id);
  }
}

type AnswerCoupon = { operationId: string; queued: MirroredCoupon };

/** What the caller is answered after its wait: the coupon as the upstream has it, or with its provisional id. */
export function answerCoupon(
  { operations, mirror }: Transaction,
  { operationId, queued }: AnswerCoupon,
): Result<MirroredCoupon> {
  const operation = operations.get(operationId);
  const refusal = operation === null ? null : refusalOf(operation);
  if (refusal !== null) return passRefusalOn(refusal);
  if (operation !== null && isUnfinished(operation)) operations.put(endAwait(operation));
  return done(mirror.get(queued.coupon.id) ?? queued);
}
