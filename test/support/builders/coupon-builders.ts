import type { Coupon, CouponTerms } from '../../../src/domain/checkout/coupon.ts';
import type { Cart, CartLine } from '../../../src/domain/checkout/quote.ts';

/** 20 % off every product of the seller, forever. */
export function buildTerms(changes: Partial<CouponTerms> = {}): CouponTerms {
  return {
    scope: { type: 'multi' },
    discount: { type: 'percent', percentOff: 20 },
    code: 'SPRING',
    startAt: null,
    endAt: null,
    minimumPurchaseAmount: null,
    usageLimit: null,
    notes: null,
    ...changes,
  };
}

/** A coupon with these terms. */
export function buildCoupon({ id = 1, ...changes }: Partial<Coupon> = {}): Coupon {
  return { id, ...buildTerms(changes) };
}

/** One item of `press` for 10.00. */
export function buildLine(changes: Partial<CartLine> = {}): CartLine {
  return {
    productKey: 'press',
    amount: 1000,
    quantity: 1,
    collectionIds: [],
    recurring: false,
    ...changes,
  };
}

export function buildCart(...lines: readonly Partial<CartLine>[]): Cart {
  return { code: 'spring', currency: null, lines: lines.map(buildLine) };
}
