import type { Coupon } from '../checkout/coupon.ts';
import type { Cart, CartLine, Redemption } from '../checkout/quote.ts';
import { maxPushBytes } from '../sync/push.ts';
import { isAwaited } from './awaited.ts';
import type { Operation } from './operation.ts';

/* What operations on coupons and redemptions send. */

/** The payload of a queued creation: the provisional coupon, whose terms are sent. `isWaiting`: a caller waits. */
export function couponPayload(coupon: Coupon, isWaiting = false): string {
  return JSON.stringify(isWaiting ? { ...coupon, isAwaited: true } : coupon);
}

type Awaited = { isAwaited?: true; refusal?: unknown };

/** The provisional coupon of a queued creation; throws for another operation. */
export function provisionalCoupon(operation: Operation): Coupon {
  if (operation.kind !== 'create_coupon' || operation.payload === null) {
    throw new Error(`operation ${operation.id} creates no coupon`);
  }
  const { isAwaited: _, refusal: __, ...coupon } = JSON.parse(operation.payload) as Coupon & Awaited;
  return coupon;
}

/** A line without the members that have their usual values. */
type PackedLine = Pick<CartLine, 'productKey' | 'amount'> & Partial<CartLine>;

export type RedeemPayload = {
  /** When the caller asked (epoch ms). */
  at: number;
  cart: Omit<Cart, 'lines'> & { lines: readonly PackedLine[] };
  /** The discount of each line; null: too long to be sent. */
  discounts: readonly number[] | null;
  /** It is sent as provisional. Set with each push. */
  provisional: boolean;
  /** The mirror shows that the limit is reached, so only the upstream may accept it. */
  isUsedUp?: true;
  isAwaited?: true;
};

/** What a push says about a redemption. */
type SentRedemption = Pick<RedeemPayload, 'at' | 'discounts' | 'provisional'> & { cart: Cart };

/** Leaves room for the other members of an operation and its push. */
export const maxCartBytes: number = maxPushBytes - 1_024;

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

function pack({ lines, ...cart }: Cart): RedeemPayload['cart'] {
  const packed = lines.map(({ productKey, amount, quantity, collectionIds, recurring }) => ({
    productKey,
    amount,
    ...(quantity !== 1 && { quantity }),
    ...(collectionIds.length > 0 && { collectionIds }),
    ...(recurring && { recurring }),
  }));
  return { ...cart, lines: packed };
}

function unpack({ lines, ...cart }: RedeemPayload['cart']): Cart {
  return {
    ...cart,
    lines: lines.map((line) => ({ quantity: 1, collectionIds: [], recurring: false, ...line })),
  };
}

export function redeemPayload(operation: Pick<Operation, 'payload'>): RedeemPayload {
  return JSON.parse(operation.payload ?? '{}') as RedeemPayload;
}

export function sentRedemption(operation: Pick<Operation, 'payload'>): SentRedemption {
  const { at, cart, discounts, provisional } = redeemPayload(operation);
  return { at, cart: unpack(cart), discounts, provisional };
}

/** The operation as its push says it: provisional if its caller has been answered. */
export function prepareToSend(operation: Operation): Operation {
  if (operation.kind !== 'redeem') return operation;
  const payload = { ...redeemPayload(operation), provisional: !isAwaited(operation) };
  return { ...operation, payload: JSON.stringify(payload) };
}

/** Null: the cart is too long for a push. */
export function redeemPayloadFor(
  { cart, quote }: Redemption,
  { isUsedUp, isAwaited: isWaiting, at }: { isUsedUp: boolean; isAwaited: boolean; at: number },
): RedeemPayload | null {
  const payload: RedeemPayload = {
    at,
    cart: pack(cart),
    discounts: quote.lines.map(({ discount }) => discount),
    provisional: false,
    ...(isUsedUp && { isUsedUp }),
    ...(isWaiting && { isAwaited: true as const }),
  };
  if (fits(payload)) return payload;
  const shorter = { ...payload, discounts: null };
  return fits(shorter) ? shorter : null;
}

/** The names of two members of a line are a character longer on the wire. */
function fits(payload: RedeemPayload): boolean {
  const bytes = byteLength(JSON.stringify(payload)) + 2 * payload.cart.lines.length;
  return bytes <= maxCartBytes;
}
