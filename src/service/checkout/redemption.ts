import { done, refuse, type Result } from '../../domain/problem/problem.ts';
import type { Cart, Quote } from '../../domain/checkout/quote.ts';
import { replayRedemption, type Redemption } from '../../domain/checkout/redemption.ts';
import type { Context } from '../ports.ts';
import type { AuthorityTransaction, Transaction } from '../tables.ts';
import { quoteCoupon, quoteMirroredCoupon } from './quote.ts';

export type RedeemCoupon = { accountId: string; order: string; cart: Cart };

/** `isNew`: this request made the redemption. */
export type RedeemedCoupon = { redemption: Redemption; isNew: boolean };

/** Redeems an account's coupon for an order. A repeated request with the same order and cart gets the same response. */
export async function redeemCoupon(
  transaction: AuthorityTransaction,
  command: RedeemCoupon,
  { now }: Context,
): Promise<Result<RedeemedCoupon>> {
  return await redeemOnce(transaction, command, now, () => quoteCoupon(transaction, { ...command, now }));
}

/** Redeems a coupon of an agent's mirror. The upstream is not notified. */
export async function redeemMirroredCoupon(
  transaction: Transaction,
  command: RedeemCoupon,
  { now }: Context,
): Promise<Result<RedeemedCoupon>> {
  return await redeemOnce(transaction, command, now, async () =>
    done(quoteMirroredCoupon(transaction, { ...command, now })),
  );
}

/** Voids the redemption of an order, so that the coupon can be used once more. */
export async function voidRedemption(
  { redemptions }: AuthorityTransaction,
  { accountId, order }: { accountId: string; order: string },
): Promise<Result<{ order: string; couponId: number }>> {
  const redemption = await redemptions.get(accountId, order);
  if (redemption === null) return redemptionNotFound();
  await redemptions.remove(accountId, order);
  return done({ order, couponId: redemption.couponId });
}

export function redemptionNotFound(): Result<never> {
  return refuse('redemption_not_found', 'This order has used no coupon.');
}

async function redeemOnce(
  { redemptions }: AuthorityTransaction,
  { accountId, order, cart }: RedeemCoupon,
  now: number,
  quoteNow: () => Promise<Result<Quote>>,
): Promise<Result<RedeemedCoupon>> {
  const known = await redemptions.get(accountId, order);
  if (known !== null) {
    const redemption = replayRedemption(known, cart);
    if (redemption === null) {
      return refuse('order_reused', 'This order has redeemed a coupon for another cart.');
    }
    return { ...done({ redemption, isNew: false }), unchanged: true };
  }
  const quoted = await quoteNow();
  if (!quoted.ok) return quoted;
  const { value: quote } = quoted;
  if (quote.couponId === null || quote.reasons.length > 0) return notRedeemable(quote);
  const redemption = { order, couponId: quote.couponId, cart, quote, redeemedAt: now };
  await redemptions.add(accountId, redemption);
  return done({ redemption, isNew: true });
}

function notRedeemable({ reasons }: Quote): Result<never> {
  const detail = `The coupon cannot be redeemed for this cart: ${reasons.join(', ')}.`;
  return refuse('coupon_not_redeemable', detail, { reasons });
}
