import { foldCouponCode } from './coupon.ts';
import { lineContent, type Cart, type CartLine, type Quote, type QuotedLine } from './quote.ts';

export const maximumOrderLength = 100;
/** No control characters; clients would remove `.` and `..` from a URL. */
export const orderPattern: RegExp = /^(?!\.{1,2}$)\P{Cc}+$/u;

/** The redemption of a coupon by an order, with the quote in the response; `redeemedAt` is epoch ms. */
export type Redemption = {
  order: string;
  couponId: number;
  cart: Cart;
  quote: Quote;
  redeemedAt: number;
};

/**
 * The response to a cart that is sent again, with the lines in their order in the new request. Null if the cart
 * differs.
 */
export function replayRedemption(redemption: Redemption, cart: Cart): Redemption | null {
  const { cart: kept, quote } = redemption;
  const isSame =
    foldCouponCode(kept.code) === foldCouponCode(cart.code) &&
    kept.currency === cart.currency &&
    kept.lines.length === cart.lines.length;
  const lines = isSame ? arrange(quote.lines, kept.lines, cart.lines) : null;
  return lines === null ? null : { ...redemption, cart, quote: { ...quote, lines } };
}

/** Puts quoted lines into the order of `wanted`; null if `lines` and `wanted` are not the same lines. */
function arrange(
  quoted: readonly QuotedLine[],
  lines: readonly CartLine[],
  wanted: readonly CartLine[],
): QuotedLine[] | null {
  const byContent = Map.groupBy(quoted.entries(), ([index]) => {
    const line = lines[index];
    return line === undefined ? null : lineContent(line);
  });
  const arranged = wanted.flatMap((line) => byContent.get(lineContent(line))?.shift()?.[1] ?? []);
  return arranged.length === wanted.length ? arranged : null;
}
