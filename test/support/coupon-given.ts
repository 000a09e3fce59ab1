import type { Coupon } from '../../src/domain/checkout/coupon.ts';
import type { Cart, CartLine } from '../../src/domain/checkout/quote.ts';

/** 20 % off every product of the seller, for ever. */
export function givenCoupon(changes: Partial<Coupon> = {}): Coupon {
  return {
    id: 1,
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

/** One piece of `press` for 10.00. */
export function givenLine(changes: Partial<CartLine> = {}): CartLine {
  return {
    productKey: 'press',
    amount: 1000,
    quantity: 1,
    collectionIds: [],
    recurring: false,
    ...changes,
  };
}

export function givenCart(...lines: readonly Partial<CartLine>[]): Cart {
  return { code: 'spring', currency: null, lines: lines.map(givenLine) };
}
