import {
  array,
  assert,
  boolean,
  constant,
  constantFrom,
  double,
  integer,
  nat,
  oneof,
  option,
  property,
  record,
  shuffledSubarray,
  tuple,
  type Arbitrary,
} from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Coupon, CouponDiscount, CouponScope } from '../../src/domain/checkout/coupon.ts';
import {
  quoteCart,
  subtotalOf,
  type Cart,
  type CartLine,
  type Quote,
} from '../../src/domain/checkout/quote.ts';
import { buildCoupon } from '../support/builders/coupon-builders.ts';

const lines: Arbitrary<CartLine> = record({
  productKey: constantFrom('press', 'brush', 'ink'),
  amount: oneof(nat(20), nat(100_000), nat(1_000_000_000)),
  quantity: integer({ min: 1, max: 50 }),
  collectionIds: constantFrom([], ['set'], ['other', 'set']),
  recurring: boolean(),
});
const carts: Arbitrary<Cart> = record({
  code: constant('spring'),
  currency: constant(null),
  lines: array(lines, { minLength: 1, maxLength: 12 }),
});
/** Percentages as people and programs write them. */
const percentages = oneof(
  integer({ min: 1, max: 1000 }).map((tenths) => tenths / 10),
  double({ min: Number.MIN_VALUE, max: 100, noNaN: true }),
);
const discounts: Arbitrary<CouponDiscount> = oneof(
  record({ type: constant('percent' as const), percentOff: percentages }),
  record({ type: constant('amount' as const), amountOff: integer({ min: 1, max: 1_000_000 }) }),
);
const scopes: Arbitrary<CouponScope> = oneof(
  constant({ type: 'multi' } as const),
  constant({ type: 'single', productKey: 'press' } as const),
  constant({ type: 'collection', collectionId: 'set' } as const),
);
const coupons: Arbitrary<Coupon> = record({
  scope: scopes,
  discount: discounts,
  startAt: option(nat(10)),
  endAt: option(nat(10)),
  minimumPurchaseAmount: option(nat(100_000)),
  usageLimit: option(integer({ min: 1, max: 5 })),
}).map(buildCoupon);
const moments = record({ now: nat(10), redemptions: nat(6) });

function covered(scope: CouponScope, { productKey, collectionIds, recurring }: CartLine): boolean {
  if (recurring) return false;
  if (scope.type === 'single') return scope.productKey === productKey;
  return scope.type === 'multi' || collectionIds.includes(scope.collectionId);
}

function sum(numbers: readonly number[]): bigint {
  return numbers.reduce((total, each) => total + BigInt(each), 0n);
}

function lineContent({ lines: quoted }: Quote): string[] {
  return quoted.map((line) => JSON.stringify(line)).toSorted();
}

describe('a quote for any coupon and cart', () => {
  it('a discount is between zero and the price, for the cart and for each line', () => {
    assert(
      property(coupons, carts, moments, (coupon, cart, moment) => {
        const quote = quoteCart(coupon, cart, moment);
        const { subtotal, eligibleSubtotal, discount, total } = quote;
        const limit = coupon.discount.type === 'percent' ? eligibleSubtotal : subtotal;
        expect(discount).toBeGreaterThanOrEqual(0);
        expect(discount).toBeLessThanOrEqual(limit);
        expect(total).toBe(subtotal - discount);
        for (const line of quote.lines) {
          expect(line.discount).toBeGreaterThanOrEqual(0);
          expect(line.discount).toBeLessThanOrEqual(line.amount * line.quantity);
        }
      }),
    );
  });

  it('a quote adds up: the lines to the discount, the pieces to the subtotal', () => {
    assert(
      property(coupons, carts, moments, (coupon, cart, moment) => {
        const quote = quoteCart(coupon, cart, moment);
        expect(sum(quote.lines.map((line) => line.discount))).toBe(BigInt(quote.discount));
        expect(BigInt(quote.subtotal)).toBe(subtotalOf(cart.lines));
      }),
    );
  });

  it('the discount of every line is within a cent of its exact share', () => {
    assert(
      property(coupons, carts, moments, (coupon, cart, moment) => {
        const quote = quoteCart(coupon, cart, moment);
        const isPercent = coupon.discount.type === 'percent';
        const base = BigInt(isPercent ? quote.eligibleSubtotal : quote.subtotal);
        for (const [index, line] of cart.lines.entries()) {
          const counts = !isPercent || covered(coupon.scope, line);
          const cost = counts ? BigInt(line.amount) * BigInt(line.quantity) : 0n;
          const given = BigInt(quote.lines[index]?.discount ?? -1) * base;
          const exact = BigInt(quote.discount) * cost;
          const off = given > exact ? given - exact : exact - given;
          expect(off === 0n || off < base).toBe(true);
        }
      }),
    );
  });

  it('a quote is redeemable exactly if date, limit, minimum and scope allow it', () => {
    assert(
      property(coupons, carts, moments, (coupon, cart, moment) => {
        const { startAt, endAt, usageLimit, minimumPurchaseAmount, scope } = coupon;
        const isAllowed =
          moment.now >= (startAt ?? 0) &&
          moment.now <= (endAt ?? Infinity) &&
          moment.redemptions < (usageLimit ?? Infinity) &&
          subtotalOf(cart.lines) >= (minimumPurchaseAmount ?? 0) &&
          cart.lines.some((line) => covered(scope, line));
        const quote = quoteCart(coupon, cart, moment);
        expect(quote.reasons.length === 0).toBe(isAllowed);
        expect(isAllowed || quote.discount === 0).toBe(true);
      }),
    );
  });

  it('a quote does not depend on the order of the lines', () => {
    const reordered = carts.chain((cart) =>
      tuple(
        constant(cart),
        shuffledSubarray([...cart.lines], { minLength: cart.lines.length, maxLength: cart.lines.length }),
      ),
    );
    assert(
      property(coupons, reordered, moments, (coupon, [cart, shuffled], moment) => {
        const one = quoteCart(coupon, cart, moment);
        const other = quoteCart(coupon, { ...cart, lines: shuffled }, moment);
        expect(lineContent(other)).toEqual(lineContent(one));
        expect({ ...other, lines: [] }).toEqual({ ...one, lines: [] });
      }),
    );
  });

  it('a larger percentage never gives a smaller discount', () => {
    assert(
      property(percentages, percentages, carts, (one, other, cart) => {
        const [less, more] = [one, other].toSorted((left, right) => left - right);
        const take = (percentOff: number): number =>
          quoteCart(buildCoupon({ discount: { type: 'percent', percentOff } }), cart, {
            now: 0,
            redemptions: 0,
          }).discount;
        expect(take(less ?? 0)).toBeLessThanOrEqual(take(more ?? 0));
      }),
    );
  });

  it('a percentage that gives exactly half a cent is rounded up', () => {
    const tenths = integer({ min: 1, max: 1000 });
    assert(
      property(oneof(constant(333), tenths), nat(9_007_199_254_740), (tenth, amount) => {
        const coupon = buildCoupon({ discount: { type: 'percent', percentOff: tenth / 10 } });
        const cart: Cart = {
          code: 'spring',
          currency: null,
          lines: [{ productKey: 'press', amount, quantity: 1, collectionIds: [], recurring: false }],
        };
        const thousandths = BigInt(amount) * BigInt(tenth);
        const expected = thousandths / 1000n + (thousandths % 1000n >= 500n ? 1n : 0n);
        expect(BigInt(quoteCart(coupon, cart, { now: 0, redemptions: 0 }).discount)).toBe(expected);
      }),
      { numRuns: 1000 },
    );
  });
});
