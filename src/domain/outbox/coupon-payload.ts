import { codeTaken, type Coupon } from '../checkout/coupon.ts';
import type { Cart, CartLine } from '../checkout/quote.ts';
import type { Operation } from './operation.ts';
import { isProblemCode, problems } from '../problem/problem-table.ts';
import { failWith, type Result } from '../problem/problem.ts';

/* What operations on coupons and redemptions send, and what their callers still wait for. */

export type Refusal = { code: string; reasons?: readonly string[] };

/**
 * The caller of some changes of coupons waits until the upstream, a Latchkey, has answered. `isAwaited`: it still waits, so a
 * refusal goes to the caller and undoes the change. This also holds if the process ends meanwhile.
 */
type AwaitedPayload = { isAwaited?: true; refusal?: Refusal };

function payloadOf({ payload }: Pick<Operation, 'payload'>): AwaitedPayload & Record<string, unknown> {
  return JSON.parse(payload ?? '{}') as AwaitedPayload & Record<string, unknown>;
}

/** Whether the caller has not been answered. */
export function isAwaited(operation: Pick<Operation, 'payload'>): boolean {
  return payloadOf(operation).isAwaited === true;
}

/** The caller is answered before the upstream has answered. */
export function endAwait<Given extends Pick<Operation, 'payload'>>(operation: Given): Given {
  const { isAwaited: _, ...payload } = payloadOf(operation);
  return { ...operation, payload: JSON.stringify(payload) };
}

/** Keeps the upstream's refusal for the caller. */
export function withRefusal<Given extends Pick<Operation, 'payload'>>(
  operation: Given,
  refusal: Refusal,
): Given {
  return { ...operation, payload: JSON.stringify({ ...payloadOf(operation), refusal }) };
}

/** The upstream's refusal; null: it has not refused. */
export function refusalOf(operation: Pick<Operation, 'payload'>): Refusal | null {
  return payloadOf(operation).refusal ?? null;
}

/** The refusal as the upstream would have answered it. */
export function refuseAsUpstream({ code, reasons }: Refusal): Result<never> {
  const detail = `The upstream refused it: ${(reasons ?? [code]).join(', ')}.`;
  // A newer upstream may have other codes.
  if (!isProblemCode(code)) return failWith('upstream_refused', detail);
  return failWith(code, detail, reasons === undefined ? {} : { reasons });
}

/** The refusal, passed on as one of the upstream. */
export function passRefusalOn({ code }: Refusal): Result<never> {
  if (!isProblemCode(code)) return failWith('upstream_refused', `The upstream refused it: ${code}.`);
  const { status, title } = problems[code];
  const detail = code === codeTaken.code ? codeTaken.detail : `${title} (${code}).`;
  return failWith('upstream_refused', detail, { status });
}

/** The payload of a queued creation: the provisional coupon, whose terms are sent. `isWaiting`: a caller waits. */
export function couponPayload(coupon: Coupon, isWaiting = false): string {
  return JSON.stringify(isWaiting ? { ...coupon, isAwaited: true } : coupon);
}

/** The provisional coupon of a queued creation; throws for another operation. */
export function provisionalCoupon(operation: Operation): Coupon {
  if (operation.kind !== 'create_coupon' || operation.payload === null) {
    throw new Error(`operation ${operation.id} creates no coupon`);
  }
  const { isAwaited: _, refusal: __, ...coupon } = JSON.parse(operation.payload) as Coupon & AwaitedPayload;
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

export type RedeemPayload = Pick<AwaitedPayload, 'isAwaited'> & {
  /** When the caller asked (epoch ms). */
  at: number;
  cart: Omit<Cart, 'lines'> & { lines: readonly PackedLine[] };
  /** The mirror shows that the limit is reached, so only the upstream may accept it. */
  isUsedUp?: true;
  /** An agent below has answered its caller, and waits for the upstream's answer. */
  isAnsweredBelow?: true;
};

/** The limit for a cart: the body of a request has 256 KiB, and its names are longer. */
export const maxCartBytes: number = 255 * 1_024;

export function redeemPayload(operation: Pick<Operation, 'payload'>): RedeemPayload {
  return JSON.parse(operation.payload ?? '{}') as RedeemPayload;
}

/** The cart of a redemption, and when its caller was answered; null: the caller waits for the upstream's answer. */
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
