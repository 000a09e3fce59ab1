import { member } from './license.ts';

/** What a customer is about to buy; amounts are cents. */
export interface Cart {
  /** The coupon's code. */
  readonly code: string;
  /** ISO 4217. */
  readonly currency?: string | undefined;
  readonly items: readonly CartItem[];
}

export interface CartItem {
  readonly productKey: string;
  /** The price of one, in cents. */
  readonly amount: number;
  /** Default: 1. */
  readonly quantity?: number | undefined;
  /** The collections that the product is in; an agent has no catalogue, and takes them from here. */
  readonly collectionIds?: readonly string[] | undefined;
  /** Whether the price is paid again and again. */
  readonly recurring?: boolean | undefined;
}

/** What a coupon takes off a cart; amounts are cents. */
export interface Quote {
  readonly code: string;
  readonly couponId: number | null;
  readonly redeemable: boolean;
  /** Why it is not redeemable, such as `ended` or `minimum_not_met`. */
  readonly reasons: readonly string[];
  readonly subtotal: number;
  readonly eligibleSubtotal: number;
  readonly discount: number;
  readonly total: number;
  readonly items: readonly QuotedItem[];
  /** `this_agent`: an agent knows of its own redemptions alone. */
  readonly scope: 'everywhere' | 'this_agent';
}

export interface QuotedItem {
  readonly productKey: string;
  readonly amount: number;
  readonly quantity: number;
  readonly discount: number;
}

/** A quote that was redeemed by an order. */
export interface Redemption extends Quote {
  readonly order: string;
  readonly redeemedAt: Date;
}

/** Writes a cart as the interface takes it. */
export function writeCart({ code, currency, items }: Cart): object {
  return {
    code,
    ...(currency !== undefined && { currency }),
    items: items.map(({ productKey, amount, quantity, collectionIds, recurring }) => ({
      product_key: productKey,
      amount,
      quantity,
      collection_ids: collectionIds,
      recurring,
    })),
  };
}

/** Reads the quote of an answer; null when it is none. */
export function readQuote(body: unknown): Quote | null {
  const data = member(body, 'data');
  if (!isQuote(data)) return null;
  return {
    code: data.code,
    couponId: data.coupon_id,
    redeemable: data.redeemable,
    reasons: data.reasons,
    subtotal: data.subtotal,
    eligibleSubtotal: data.eligible_subtotal,
    discount: data.discount,
    total: data.total,
    items: data.lines.map(({ product_key: productKey, ...rest }) => ({ productKey, ...rest })),
    scope: data.scope ?? 'everywhere',
  };
}

/** Reads the redemption of an answer; null when it is none. */
export function readRedemption(body: unknown): Redemption | null {
  const quote = readQuote(body);
  const [order, at] = ['order', 'redeemed_at'].map((name) => member(member(body, 'data'), name));
  if (quote === null || typeof order !== 'string' || typeof at !== 'string') return null;
  const redeemedAt = new Date(at);
  return Number.isNaN(redeemedAt.getTime()) ? null : { ...quote, order, redeemedAt };
}

function isQuote(data: unknown): data is QuoteData {
  const [code, redeemable, reasons, lines] = ['code', 'redeemable', 'reasons', 'lines'].map((name) =>
    member(data, name),
  );
  if (typeof code !== 'string' || typeof redeemable !== 'boolean') return false;
  if (!hasNumbers(data, ['subtotal', 'eligible_subtotal', 'discount', 'total'])) return false;
  return Array.isArray(reasons) && Array.isArray(lines) && lines.every(isLine);
}

function isLine(line: unknown): boolean {
  const isNamed = typeof member(line, 'product_key') === 'string';
  return isNamed && hasNumbers(line, ['amount', 'quantity', 'discount']);
}

function hasNumbers(data: unknown, names: readonly string[]): boolean {
  return names.every((name) => typeof member(data, name) === 'number');
}

interface QuoteData {
  code: string;
  coupon_id: number | null;
  redeemable: boolean;
  reasons: string[];
  subtotal: number;
  eligible_subtotal: number;
  discount: number;
  total: number;
  lines: { product_key: string; amount: number; quantity: number; discount: number }[];
  scope?: 'this_agent';
}
