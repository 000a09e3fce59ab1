import { describe, expect, it } from 'vitest';
import type { Coupon } from '../../../src/domain/checkout/coupon.ts';
import {
  quoteCart,
  subtotalOf,
  type Cart,
  type Quote,
  type QuoteReason,
} from '../../../src/domain/checkout/quote.ts';
import { buildCart, buildCoupon, buildLine } from '../../support/builders/coupon-builders.ts';

const now = Date.UTC(2026, 5, 1);
const anyMoment = { now, redemptions: 0 };

function discounts(coupon: Coupon, cart: Cart): { discount: number; total: number; lines: number[] } {
  const { discount, total, lines } = quoteCart(coupon, cart, anyMoment);
  return { discount, total, lines: lines.map((line) => line.discount) };
}

function percent(percentOff: number, changes: Partial<Coupon> = {}): Coupon {
  return buildCoupon({ discount: { type: 'percent', percentOff }, ...changes });
}

function amount(amountOff: number, changes: Partial<Coupon> = {}): Coupon {
  return buildCoupon({ discount: { type: 'amount', amountOff }, ...changes });
}

const onPress = { scope: { type: 'single', productKey: 'press' } } as const;
const onSet = { scope: { type: 'collection', collectionId: 'set' } } as const;

describe('a discount', () => {
  it.each([
    ['a percentage is taken of the cart', percent(20), buildCart({}), { discount: 200, total: 800 }],
    ['half a cent is rounded up', percent(50), buildCart({ amount: 1 }), { discount: 1, total: 0 }],
    ['less than half a cent is rounded down', percent(49.9), buildCart({ amount: 1 }), { discount: 0 }],
    // In binary 1.005 * 100 is 100.49999999999999.
    ['a percentage is decimal', percent(1.005), buildCart({ amount: 10_000 }), { discount: 101 }],
    ['of 33.3 % no cent is lost', percent(33.3), buildCart({ amount: 1500 }), { discount: 500 }],
    [
      'a very small percentage is exact',
      percent(0.000_000_1),
      buildCart({ amount: 500_000_000 }),
      { discount: 1 },
    ],
    ['100 % takes everything', percent(100), buildCart({ amount: 999 }), { discount: 999, total: 0 }],
    ['an amount is subtracted', amount(250), buildCart({}), { discount: 250, total: 750 }],
    ['no more than the cart costs', amount(5000), buildCart({}), { discount: 1000, total: 0 }],
    ['nothing is taken of what is free', amount(500), buildCart({ amount: 0 }), { discount: 0, total: 0 }],
    ['pieces count', percent(10), buildCart({ amount: 333, quantity: 3 }), { discount: 100, total: 899 }],
  ])('%s', (_, coupon, cart, expected) => {
    expect(discounts(coupon, cart)).toMatchObject(expected);
  });

  it('is exact for amounts as large as can be written', () => {
    const cart = buildCart({ amount: Number.MAX_SAFE_INTEGER });
    expect(discounts(percent(99.99), cart)).toMatchObject({
      discount: 9_006_298_534_815_517,
      total: 900_719_925_474,
    });
  });
});

describe('a discount over several lines', () => {
  it('adds up to the cent, the largest remainders first', () => {
    // 330 of 1099 cents: the exact shares are three times 99.99, and 30.03.
    const cart = buildCart({ amount: 333 }, { amount: 333 }, { amount: 333 }, { amount: 100 });
    const quoted = discounts(percent(30), cart);
    expect(quoted).toEqual({ discount: 330, total: 769, lines: [100, 100, 100, 30] });
  });

  it('gives the cent that is left over to one line, whatever the order of the lines', () => {
    const one = buildLine({ productKey: 'a', amount: 100 });
    const other = buildLine({ productKey: 'b', amount: 100 });
    const cart = { code: 'SPRING', currency: null };
    expect(discounts(amount(1), { ...cart, lines: [one, other] }).lines).toEqual([1, 0]);
    expect(discounts(amount(1), { ...cart, lines: [other, one] }).lines).toEqual([0, 1]);
    const pair = buildLine({ amount: 50, quantity: 2 });
    const piece = buildLine({ amount: 100, quantity: 1 });
    expect(discounts(amount(1), { ...cart, lines: [pair, piece] }).lines).toEqual([1, 0]);
    expect(discounts(amount(1), { ...cart, lines: [piece, pair] }).lines).toEqual([0, 1]);
    const rented = buildLine({ amount: 100, recurring: true });
    expect(discounts(amount(1), { ...cart, lines: [piece, rented] }).lines).toEqual([1, 0]);
    expect(discounts(amount(1), { ...cart, lines: [rented, piece] }).lines).toEqual([0, 1]);
    const inSet = buildLine({ amount: 100, collectionIds: ['set'] });
    expect(discounts(amount(1), { ...cart, lines: [inSet, piece] }).lines).toEqual([1, 0]);
    expect(discounts(amount(1), { ...cart, lines: [piece, inSet] }).lines).toEqual([0, 1]);
  });

  it('of a percentage is taken of the lines that the coupon covers', () => {
    const cart = buildCart({ amount: 1000 }, { productKey: 'other', amount: 5000 });
    const quote = quoteCart(percent(20, onPress), cart, anyMoment);
    expect(quote).toMatchObject({ subtotal: 6000, eligibleSubtotal: 1000, discount: 200, total: 5800 });
    expect(quote.lines.map((line) => line.discount)).toEqual([200, 0]);
  });

  it('of an amount is taken of the whole cart once one line is covered', () => {
    const cart = buildCart({ amount: 1000 }, { productKey: 'other', amount: 3000 });
    const quote = quoteCart(amount(2000, onPress), cart, anyMoment);
    expect(quote).toMatchObject({ eligibleSubtotal: 1000, discount: 2000, total: 2000 });
    expect(quote.lines.map((line) => line.discount)).toEqual([500, 1500]);
  });

  it('leaves out what has a recurring price', () => {
    const cart = buildCart({ amount: 1000 }, { amount: 1000, recurring: true });
    expect(discounts(percent(20), cart).lines).toEqual([200, 0]);
  });
});

/** Every rule and a coupon, cart and moment that break it alone. */
const refused: Record<Exclude<QuoteReason, 'unknown_code'>, () => Quote> = {
  not_started: () => quoteCart(buildCoupon({ startAt: now + 1 }), buildCart({}), anyMoment),
  ended: () => quoteCart(buildCoupon({ endAt: now - 1 }), buildCart({}), anyMoment),
  usage_limit_reached: () =>
    quoteCart(buildCoupon({ usageLimit: 3 }), buildCart({}), { now, redemptions: 3 }),
  minimum_not_met: () => quoteCart(buildCoupon({ minimumPurchaseAmount: 1001 }), buildCart({}), anyMoment),
  product_not_covered: () => quoteCart(buildCoupon(onPress), buildCart({ productKey: 'other' }), anyMoment),
  collection_not_covered: () =>
    quoteCart(buildCoupon(onSet), buildCart({ collectionIds: ['another'] }), anyMoment),
  recurring_not_covered: () => quoteCart(buildCoupon(onPress), buildCart({ recurring: true }), anyMoment),
};

describe('a coupon', () => {
  it.each(Object.entries(refused))('is refused with %s, and takes nothing off', (reason, quote) => {
    expect(quote()).toMatchObject({
      couponId: 1,
      reasons: [reason],
      discount: 0,
      subtotal: 1000,
      total: 1000,
      lines: [{ productKey: expect.any(String), amount: 1000, quantity: 1, discount: 0 }],
    });
  });

  it('that nobody knows is refused under the code that was entered', () => {
    expect(quoteCart(null, buildCart({}), anyMoment)).toMatchObject({
      code: 'spring',
      couponId: null,
      reasons: ['unknown_code'],
      eligibleSubtotal: 0,
      discount: 0,
    });
  });

  it('is refused by every rule that it breaks, at once', () => {
    const coupon = buildCoupon({ ...onSet, endAt: now - 1, usageLimit: 1, minimumPurchaseAmount: 5000 });
    const { reasons } = quoteCart(coupon, buildCart({}), { now, redemptions: 1 });
    expect(reasons).toEqual(['ended', 'usage_limit_reached', 'minimum_not_met', 'collection_not_covered']);
  });

  it('holds at the very moments of its dates, at its minimum and for its last use', () => {
    const coupon = buildCoupon({ startAt: now, endAt: now, minimumPurchaseAmount: 1000, usageLimit: 3 });
    expect(quoteCart(coupon, buildCart({}), { now, redemptions: 2 }).reasons).toEqual([]);
  });

  it('of a collection covers what is in it', () => {
    const cart = buildCart({ collectionIds: ['another', 'set'] }, { collectionIds: [] });
    expect(discounts(percent(20, onSet), cart).lines).toEqual([200, 0]);
  });
});

it('a cart is added up exactly, however large it is', () => {
  const lines = [buildLine({ amount: Number.MAX_SAFE_INTEGER, quantity: 1000 }), buildLine({ amount: 1 })];
  expect(subtotalOf(lines)).toBe(9_007_199_254_740_991_001n);
});
