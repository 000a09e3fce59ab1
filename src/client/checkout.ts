import { member } from './license.ts';

/** What a customer is about to buy; amounts are cents. */
export interface Cart {
  /** The coupon's code. */
  readonly code: string;
  /** ISO 4217. */
  readonly currency?: string;
  readonly items: readonly CartItem[];
}

export interface CartItem {
  readonly productKey: string;
  /** The price of one, in cents. */
  readonly amount: number;
  /** Default: 1. */
  readonly quantity?: number;
  /** The collections that the product is in; an agent has no catalogue, and takes them from here. */
  readonly collectionIds?: readonly string[];
  /** Whether the price is paid again and again. */
  readonly recurring?: boolean;
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
  const data = member(body, 'data') as QuoteData | undefined;
  if (data === undefined || typeof data.total !== 'number' || !Array.isArray(data.lines)) return null;
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
  const data = member(body, 'data') as { order: string; redeemed_at: string } | undefined;
  if (quote === null || data === undefined || typeof data.order !== 'string') return null;
  return { ...quote, order: data.order, redeemedAt: new Date(data.redeemed_at) };
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
