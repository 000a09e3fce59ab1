import type { Coupon } from '../checkout/coupon.ts';
import type { Cart, CartLine } from '../checkout/quote.ts';
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

export function packLine({ quantity, collectionIds, recurring, ...line }: CartLine): PackedLine {
  return {
    ...line,
    ...(quantity !== 1 && { quantity }),
    ...(collectionIds.length > 0 && { collectionIds }),
    ...(recurring && { recurring }),
  };
}

export type RedeemPayload = {
  /** When the caller asked (epoch ms). */
  at: number;
  cart: Omit<Cart, 'lines'> & { lines: readonly PackedLine[] };
  /** The mirror shows that the limit is reached, so only the upstream may accept it. */
  isUsedUp?: true;
  /** An agent below has answered its caller, and waits for the word of the upstream. */
  isAnsweredBelow?: true;
  isAwaited?: true;
};

/** The limit for a cart: the body of a request has 256 KiB, and its names are longer. */
export const maxCartBytes: number = 255 * 1_024;

export function redeemPayload(operation: Pick<Operation, 'payload'>): RedeemPayload {
  return JSON.parse(operation.payload ?? '{}') as RedeemPayload;
}

/** The cart of a redemption, and when its caller was answered; null: the caller waits for the word of the upstream. */
export function sentRedemption(operation: Pick<Operation, 'payload'>): {
  cart: Cart;
  answeredAt: number | null;
} {
  const { at, cart, isAnsweredBelow } = redeemPayload(operation);
  const lines = cart.lines.map((line) => ({ quantity: 1, collectionIds: [], recurring: false, ...line }));
  const isAnswered = isAnsweredBelow === true || !isAwaited(operation);
  return { cart: { ...cart, lines }, answeredAt: isAnswered ? at : null };
}

/** Null: the cart is too long for a request. */
export function redeemPayloadFor(cart: Cart, about: Omit<RedeemPayload, 'cart'>): string | null {
  const lines = cart.lines.map(packLine);
  const payload = JSON.stringify({ ...about, cart: { ...cart, lines } } satisfies RedeemPayload);
  // The names of two members of a line are a character longer on the wire.
  const bytes = Buffer.byteLength(payload) + 2 * lines.length;
  return bytes > maxCartBytes ? null : payload;
}
