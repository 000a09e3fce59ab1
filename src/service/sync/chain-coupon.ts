import { refusalOf, endAwait } from '../../domain/outbox/awaited.ts';
import { provisionalCoupon } from '../../domain/outbox/coupon-payload.ts';
import { isUnfinished } from '../../domain/outbox/operation.ts';
import { isProblemCode } from '../../domain/problem/problem-table.ts';
import { done, failWith, type Result } from '../../domain/problem/problem.ts';
import type {
  MalformedOperation,
  OperationResult,
  PushedCoupon,
  PushedOperation,
  PushedRedemption,
  PushedVoid,
} from '../../domain/sync/push.ts';
import type { QuoteReason } from '../../domain/checkout/quote.ts';
import { storedCouponCode } from '../checkout.ts';
import { queueCoupon } from '../outbox/coupon-creation.ts';
import { hasTerms } from '../outbox/provisional-coupon.ts';
import { queueRedemption, queueVoid } from '../outbox/redemption.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import type { ApplyPush } from './push.ts';
import { redeemed } from './push.ts';

/* What an agent in the middle of a chain does with the coupons and redemptions of an agent below (src/sync/README.md, Chains). */

type Taking = Pick<ApplyPush, 'tenant'> & { maxPending: number; hasCoupons: boolean };

/** Takes a change of coupons into the outbox, under its own id. */
export async function takeCouponChange(
  transaction: Transaction,
  taking: Taking,
  operation: PushedCoupon | PushedRedemption | PushedVoid,
  context: Context,
): Promise<Result<OperationResult>> {
  if (!taking.hasCoupons)
    return failWith('coupons_not_configured', 'This agent has no API key of its upstream.');
  const before = couponChangeBefore(transaction, operation);
  if (before !== null) return done(before);
  const { accountId } = taking.tenant;
  const { maxPending } = taking;
  const { id } = operation;
  switch (operation.kind) {
    case 'create_coupon':
      return create(transaction, operation, { maxPending }, context);
    case 'redeem': {
      const { order, cart: sent, provisional, at } = operation;
      const code = await storedCouponCode(sent.code, (each) => transaction.mirror.byCode(each));
      const pushed = { id, takenAt: provisional ? Math.min(at, context.now) : null };
      const cart = { ...sent, code };
      const command = { accountId, order, cart, isReachable: false, maxPending, pushed };
      const queued = await queueRedemption(transaction, command, context);
      if (!queued.ok) return queued;
      answerBelow(transaction, queued.value.operationId);
      return done(redeemed(operation, queued.value.redemption));
    }
    case 'void': {
      const voided = await queueVoid(
        transaction,
        { accountId, order: operation.order, maxPending, id },
        context,
      );
      return voided.ok ? done({ outcome: 'applied' }) : voided;
    }
    default:
      return operation satisfies never;
  }
}

function create(
  transaction: Transaction,
  { id, terms }: PushedCoupon,
  { maxPending }: { maxPending: number },
  context: Context,
): Result<OperationResult> {
  const taken = transaction.mirror.byCode(terms.code);
  if (taken !== null) {
    return hasTerms(taken.coupon, terms)
      ? done(created(taken.coupon.id))
      : done({ outcome: 'conflicted', code: 'coupon_code_taken' });
  }
  const queued = queueCoupon(transaction, { terms, isSentNow: false, maxPending, id }, context);
  return queued.ok ? done(created(queued.value.coupon.id)) : queued;
}

/** A provisional id means nothing below: the agent there learns the id from the list once the authority has given it. */
function created(id: number): OperationResult {
  return { outcome: 'applied', ...(id > 0 && { couponId: id }) };
}

/** The agent below gets this agent's word, and tells it to its caller. */
function answerBelow({ operations }: Transaction, operationId: string | null): void {
  const operation = operationId === null ? null : operations.get(operationId);
  if (operation !== null && isUnfinished(operation)) operations.put(endAwait(operation));
}

/** The result of a change of coupons that is in the outbox; null: it is not. */
export function couponChangeBefore(
  transaction: Transaction,
  sent: PushedOperation | MalformedOperation,
): OperationResult | null {
  const operation = sent.id === null ? null : transaction.operations.get(sent.id);
  if (operation === null) return null;
  if (sent.kind === 'create_coupon') {
    const { id } = provisionalCoupon(operation);
    return created(transaction.mirror.get(id)?.coupon.id ?? id);
  }
  if (sent.kind !== 'redeem') return sent.kind === 'void' ? { outcome: 'applied' } : null;
  const refusal = refusalOf(operation);
  if (refusal !== null) return refusedAbove(refusal);
  answerBelow(transaction, operation.id);
  const redemption = transaction.redemptions.get('default', sent.order);
  // This agent has refused it, because the upstream has not answered.
  if (redemption === null)
    return refusedAbove({ code: 'coupon_not_redeemable', reasons: ['usage_limit_reached'] });
  return redeemed(sent, redemption);
}

function refusedAbove({ code, reasons }: { code: string; reasons?: readonly string[] }): OperationResult {
  return {
    outcome: 'refused',
    code: isProblemCode(code) ? code : 'upstream_refused',
    ...(reasons !== undefined && { reasons: reasons as readonly QuoteReason[] }),
  };
}
