import { type Coupon, type CouponDiscount, type CouponScope, foldCouponCode } from './coupon.ts';

/** A line of a cart; `amount` is the price of one item in cents. */
export type CartLine = {
  productKey: string;
  amount: number;
  quantity: number;
  /** The collections that hold the product. */
  collectionIds: readonly string[];
  /** Whether the product has a recurring price. */
  recurring: boolean;
};

/** The products that a customer wants to buy, and the coupon code that the customer entered. */
export type Cart = { code: string; currency: string | null; lines: readonly CartLine[] };

export const maxCartLines = 1000;

/** Why a coupon cannot be redeemed for a cart. */
export const quoteReasons = [
  'unknown_code',
  'not_started',
  'ended',
  'usage_limit_reached',
  'minimum_not_met',
  'product_not_covered',
  'collection_not_covered',
  'recurring_not_covered',
] as const;

export type QuoteReason = (typeof quoteReasons)[number];

/** A line with the discount on all its items together, in cents. */
type QuotedLine = { productKey: string; amount: number; quantity: number; discount: number };

/** Whether a coupon can be redeemed for a cart, and the discount; amounts are cents. */
export type Quote = {
  /** The code of the coupon, or the entered code if there is no such coupon. */
  code: string;
  couponId: number | null;
  /** All reasons against the coupon; empty if it can be redeemed. */
  reasons: readonly QuoteReason[];
  subtotal: number;
  /** The price of the lines that the coupon covers. */
  eligibleSubtotal: number;
  discount: number;
  total: number;
  /** In the order of the cart; their discounts add up to `discount`. */
  lines: readonly QuotedLine[];
};

/** `redemptions`: how often the coupon was redeemed before. */
type QuoteContext = { now: number; redemptions: number };

/** The price of a cart in cents. A bigint is exact for any cart. */
export function subtotalOf(lines: readonly CartLine[]): bigint {
  return sum(lines.map(costOf));
}

/**
 * Quotes a coupon for a cart (specification 2.1). A percentage applies to the lines that the coupon covers, rounded
 * half up to the cent. An amount applies to the whole cart. The discount is never more than the price. The subtotal of
 * the cart must be a safe integer.
 */
export function quoteCart(coupon: Coupon | null, cart: Cart, context: QuoteContext): Quote {
  const lines = cart.lines.map((line) => ({
    line,
    cost: costOf(line),
    isCovered: coupon !== null && !line.recurring && covers(coupon.scope, line),
  }));
  const subtotal = subtotalOf(cart.lines);
  const reasons = coupon === null ? (['unknown_code'] as const) : reasonsAgainst(coupon, cart, context);
  const discounts =
    coupon === null || reasons.length > 0 ? lines.map(() => 0n) : discountsOf(coupon.discount, lines);
  const discount = sum(discounts);
  return {
    code: coupon?.code ?? cart.code,
    couponId: coupon?.id ?? null,
    reasons,
    subtotal: Number(subtotal),
    eligibleSubtotal: Number(sum(lines.map(({ cost, isCovered }) => (isCovered ? cost : 0n)))),
    discount: Number(discount),
    total: Number(subtotal - discount),
    lines: cart.lines.map(({ productKey, amount, quantity }, index) => {
      return { productKey, amount, quantity, discount: Number(discounts[index]) };
    }),
  };
}

function reasonsAgainst(coupon: Coupon, cart: Cart, { now, redemptions }: QuoteContext): QuoteReason[] {
  const { startAt, endAt, usageLimit, minimumPurchaseAmount: minimum } = coupon;
  const notCovered = reasonOfCoverage(coupon.scope, cart.lines);
  return [
    ...(startAt !== null && now < startAt ? (['not_started'] as const) : []),
    ...(endAt !== null && now > endAt ? (['ended'] as const) : []),
    ...(usageLimit !== null && redemptions >= usageLimit ? (['usage_limit_reached'] as const) : []),
    ...(minimum !== null && subtotalOf(cart.lines) < minimum ? (['minimum_not_met'] as const) : []),
    ...(notCovered === null ? [] : [notCovered]),
  ];
}

/** Why the coupon covers no line; null if it covers a line. */
function reasonOfCoverage(scope: CouponScope, lines: readonly CartLine[]): QuoteReason | null {
  const inScope = lines.filter((line) => covers(scope, line));
  if (inScope.some(({ recurring }) => !recurring)) return null;
  if (inScope.length > 0) return 'recurring_not_covered';
  return scope.type === 'collection' ? 'collection_not_covered' : 'product_not_covered';
}

function covers(scope: CouponScope, { productKey, collectionIds }: CartLine): boolean {
  switch (scope.type) {
    case 'single':
      return scope.productKey === productKey;
    case 'multi':
      return true;
    case 'collection':
      return collectionIds.includes(scope.collectionId);
    default:
      return scope satisfies never;
  }
}

type PricedLine = { line: CartLine; cost: bigint; isCovered: boolean };

function discountsOf(discount: CouponDiscount, lines: readonly PricedLine[]): bigint[] {
  switch (discount.type) {
    case 'percent': {
      const costs = lines.map(({ cost, isCovered }) => (isCovered ? cost : 0n));
      return distribute(percentageOf(discount.percentOff, sum(costs)), lines, costs);
    }
    case 'amount': {
      const costs = lines.map(({ cost }) => cost);
      const subtotal = sum(costs);
      const amountOff = BigInt(discount.amountOff);
      return distribute(amountOff < subtotal ? amountOff : subtotal, lines, costs);
    }
    default:
      return discount satisfies never;
  }
}

/** Takes a percentage of cents, rounded half up. */
function percentageOf(percent: number, cents: bigint): bigint {
  const { numerator, denominator } = fractionOf(percent);
  return (2n * cents * numerator + 100n * denominator) / (200n * denominator);
}

/** The fraction that a number's shortest notation means: 33.3 is 333/10, although its binary form is not exact. */
function fractionOf(decimal: number): { numerator: bigint; denominator: bigint } {
  const [mantissa = '', exponent = '0'] = String(decimal).split('e');
  const [whole = '', places = ''] = mantissa.split('.');
  // A percentage is at most 100, so its exponent is never positive.
  return {
    numerator: BigInt(whole + places),
    denominator: 10n ** BigInt(places.length - Number(exponent)),
  };
}

/**
 * Shares a discount among lines in proportion to their costs. The cents that are left after rounding down go to the
 * lines with the largest remainders. What the lines contain breaks ties, so that the same cart in another order gets
 * the same shares.
 */
function distribute(discount: bigint, lines: readonly PricedLine[], costs: readonly bigint[]): bigint[] {
  const base = sum(costs);
  if (base === 0n) return costs.map(() => 0n);
  const shares = costs.map((cost) => (discount * cost) / base);
  const ranked = lines
    .map(({ line }, index) => {
      const cost = costs[index] ?? 0n;
      return { index, line, cost, remainder: (discount * cost) % base, content: lineContent(line) };
    })
    .toSorted(
      (one, other) =>
        compare(other.remainder, one.remainder) ||
        compare(other.cost, one.cost) ||
        compare(one.line.productKey, other.line.productKey) ||
        compare(one.line.amount, other.line.amount) ||
        compare(one.content, other.content),
    );
  const left = Number(discount - sum(shares));
  const roundedUp = new Set(ranked.slice(0, left).map(({ index }) => index));
  return shares.map((share, index) => (roundedUp.has(index) ? share + 1n : share));
}

function lineContent({ productKey, amount, quantity, collectionIds, recurring }: CartLine): string {
  return JSON.stringify([productKey, amount, quantity, collectionIds.toSorted(), recurring]);
}

function compare<Value extends bigint | string | number>(one: Value, other: Value): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function costOf({ amount, quantity }: CartLine): bigint {
  return BigInt(amount) * BigInt(quantity);
}

function sum(cents: readonly bigint[]): bigint {
  return cents.reduce((total, each) => total + each, 0n);
}

export const maxOrderLength = 100;
/** No control characters; clients would remove `.` and `..` from a URL. */
export const orderPattern: RegExp = /^(?!\.{1,2}$)\P{Cc}+$/u;

/** The redemption of a coupon by an order, with the quote in the response; `redeemedAt` is epoch ms. */
export type Redemption = {
  order: string;
  couponId: number;
  cart: Cart;
  quote: Quote;
  redeemedAt: number;
  /** It was made without the authority, and goes beyond the coupon's `usage_limit`. */
  overLimit?: true;
};

/**
 * The response to a cart that is sent again, with the lines in their order in the new request. Null if the cart
 * differs.
 */
export function repeatedRedemption(redemption: Redemption, cart: Cart): Redemption | null {
  const { cart: before, quote } = redemption;
  const isSame =
    foldCouponCode(before.code) === foldCouponCode(cart.code) &&
    before.currency === cart.currency &&
    before.lines.length === cart.lines.length;
  const lines = isSame ? reorder(quote.lines, before.lines, cart.lines) : null;
  return lines === null ? null : { ...redemption, cart, quote: { ...quote, lines } };
}

/** Puts quoted lines into the order of `wanted`; null if `lines` and `wanted` are not the same lines. */
function reorder(
  quoted: readonly QuotedLine[],
  lines: readonly CartLine[],
  wanted: readonly CartLine[],
): QuotedLine[] | null {
  const byContent = Map.groupBy(quoted.entries(), ([index]) => {
    const line = lines[index];
    return line === undefined ? null : lineContent(line);
  });
  const reordered = wanted.flatMap((line) => byContent.get(lineContent(line))?.shift()?.[1] ?? []);
  return reordered.length === wanted.length ? reordered : null;
}
