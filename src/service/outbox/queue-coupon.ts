import { foldCouponCode, type CouponTerms } from '../../domain/coupon.ts';
import { advance, type Operation } from '../../domain/operation.ts';
import { done, refuse, type Result } from '../../domain/problem.ts';
import { couponPayload } from './coupon-payload.ts';
import { unfinishedCount } from './lane.ts';
import type { Context } from '../ports.ts';
import type { MirroredCoupon, Transaction } from '../tables.ts';

export type QueueCoupon = {
  terms: CouponTerms;
  /** `lost`: it was sent and its answer never came; `null`: it was not sent. */
  sent: { detail: string; settleAt: number } | null;
  maxPending: number;
};

/** Keeps a coupon under a provisional id, with the operation that will create it upstream. */
export function queueCoupon(
  transaction: Transaction,
  { terms, sent, maxPending }: QueueCoupon,
  { now, steady, random }: Context,
): Result<MirroredCoupon> {
  if (transaction.mirror.byCode(terms.code) !== null) {
    return refuse('coupon_code_taken', 'There already is a coupon with this code.');
  }
  if (unfinishedCount(transaction) >= maxPending) {
    return refuse(
      'storage_full',
      'The outbox is full (sync.max_pending): changes are taken again once the upstream has taken some.',
    );
  }
  const coupon = { ...terms, id: transaction.mirror.provisionalId() };
  const mirrored = { coupon, confirmedAt: null };
  transaction.mirror.put(mirrored);
  const fresh: Omit<Operation, 'seq'> = {
    id: random.uuid(now),
    kind: 'create_coupon',
    subject: foldCouponCode(terms.code),
    productKey: null,
    createdAt: now,
    attempts: 0,
    failures: 0,
    nextAt: steady,
    outage: false,
    lastError: null,
    revision: null,
    payload: couponPayload(coupon),
    progress: { state: 'pending', doubtful: false },
  };
  const operation = transaction.operations.add(fresh);
  if (sent !== null) {
    const asSent = advance(operation, { type: 'send', baseUses: null, at: steady });
    const inDoubt = advance(asSent, { type: 'ambiguous' });
    transaction.operations.put({ ...inDoubt, nextAt: sent.settleAt, lastError: sent.detail });
  }
  return done(mirrored);
}
