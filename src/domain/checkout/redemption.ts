import { foldCouponCode } from './coupon.ts';
import { contentOf, type Cart, type CartLine, type Quote, type QuotedLine } from './quote.ts';

export const maximumOrderLength = 100;
/** No control characters; `.` and `..` would be lost from a URL. */
export const orderPattern: RegExp = /^(?!\.{1,2}$)\P{Cc}+$/u;

/** The use of a coupon by an order, with what was answered; `redeemedAt` is epoch ms. */
export type Redemption = {
  order: string;
  couponId: number;
  cart: Cart;
  quote: Quote;
  redeemedAt: number;
};

/**
 * A redemption as it is answered to its cart when that is sent again, the lines in the order that they have now;
 * null when it is another cart.
 */
export function answerAgain(redemption: Redemption, cart: Cart): Redemption | null {
  const { cart: kept, quote } = redemption;
  const isSame =
    foldCouponCode(kept.code) === foldCouponCode(cart.code) &&
    kept.currency === cart.currency &&
    kept.lines.length === cart.lines.length;
  const lines = isSame ? arrange(quote.lines, kept.lines, cart.lines) : null;
  return lines === null ? null : { ...redemption, cart, quote: { ...quote, lines } };
}

/** Puts the answers to some lines in the order of the same lines elsewhere; null when they are not the same. */
function arrange(
  answers: readonly QuotedLine[],
  lines: readonly CartLine[],
  wanted: readonly CartLine[],
): QuotedLine[] | null {
  const byContent = Map.groupBy(answers.entries(), ([index]) => {
    const line = lines[index];
    return line === undefined ? null : contentOf(line);
  });
  const arranged = wanted.flatMap((line) => byContent.get(contentOf(line))?.shift()?.[1] ?? []);
  return arranged.length === wanted.length ? arranged : null;
}
