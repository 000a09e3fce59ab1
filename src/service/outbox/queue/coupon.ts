import {
  foldCouponCode,
  isPlainCouponCode,
  unusualCode,
  type CouponTerms,
} from '../../../domain/checkout/coupon.ts';
import { done, refuse, refuseParameters, type Result } from '../../../domain/problem/problem.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import type { MirroredCoupon } from '../../agent/tables.ts';
import { couponPayload } from './coupon-payload.ts';
import { enqueue, refuseWhenFull } from './enqueue.ts';
import { send } from '../delivery/send.ts';
import { fencedUntil } from '../lane.ts';

export type QueueCoupon = {
  terms: CouponTerms;
  /**
   * It is sent at once, for the caller who waits: it is committed as in flight, so that a process that ends
   * before the answer finds out by the upstream's list what became of it. It waits all the same where an earlier
   * request for this code may still be on its way.
   */
  isSentNow: boolean;
  maxPending: number;
};

/** The coupon under its provisional id, and the operation that creates it; `isSent`: it is to be sent now. */
export type QueuedCoupon = MirroredCoupon & { operationId: string; isSent: boolean };

/** Keeps a coupon under a provisional id, with the operation that will create it upstream. */
export function queueCoupon(
  transaction: Transaction,
  { terms, isSentNow, maxPending }: QueueCoupon,
  context: Context,
): Result<QueuedCoupon> {
  const { mirror } = transaction;
  if (!isPlainCouponCode(terms.code)) return refuseParameters([unusualCode]);
  // Where the upstream can be asked, it says itself what it thinks of a code that it has.
  if (mirror.provisionalByCode(terms.code) !== null || (!isSentNow && mirror.byCode(terms.code) !== null)) {
    return refuseTakenCode();
  }
  const room = refuseWhenFull(transaction, maxPending);
  if (!room.ok) return room;
  const coupon = { ...terms, id: mirror.provisionalId() };
  const mirrored = { coupon, confirmedAt: null };
  mirror.put(mirrored);
  const subject = foldCouponCode(terms.code);
  const isSent = isSentNow && isLaneFree(transaction, subject, context);
  const operation = enqueue(
    transaction,
    {
      kind: 'create_coupon',
      subject,
      productKey: null,
      payload: couponPayload(coupon),
    },
    context,
  );
  if (isSent) send(transaction, operation, { baseUses: null, at: context.steady });
  return done({ ...mirrored, operationId: operation.id, isSent });
}

/** The refusal of a code that a coupon has which is known here. */
export function refuseTakenCode(): Result<never> {
  return refuse('coupon_code_taken', 'There already is a coupon with this code.');
}

function isLaneFree(transaction: Transaction, subject: string, { steady }: Context): boolean {
  const isEmpty = transaction.operations.tail(subject, 'coupon') === null;
  return isEmpty && fencedUntil(transaction, { subject, lane: 'coupon', asDisable: false }, steady) === null;
}
