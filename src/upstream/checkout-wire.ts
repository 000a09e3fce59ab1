import { z } from 'zod';
import { quoteReasons, type Cart, type Quote } from '../domain/checkout/quote.ts';
import { packLine } from '../domain/outbox/coupon-payload.ts';
import { formatDatetime } from '../domain/time.ts';
import type { StoredRedemption, UpstreamRedemption } from '../service/ports.ts';
import type { JsonObject, Parsed } from './wire.ts';

/* Redemptions at a Latchkey (`/agent/v1/redemptions`), as an agent sends and reads them. */

/** The body of a redemption, as JSON. */
export function writeRedemption({
  order,
  cart,
  answeredAt,
}: Pick<UpstreamRedemption, 'order' | 'cart' | 'answeredAt'>): string {
  const answered = answeredAt === null ? {} : { answered_at: formatDatetime(answeredAt) };
  return JSON.stringify({ order, ...writeCart(cart), ...answered });
}

function writeCart({ code, currency, lines }: Cart): object {
  const items = lines.map(packLine).map(({ productKey, collectionIds, ...line }) => ({
    product_key: productKey,
    ...line,
    ...(collectionIds !== undefined && { collection_ids: collectionIds }),
  }));
  return { code, ...(currency !== null && { currency }), items };
}

const text = z.string().max(500);

export const quote = z
  .object({
    code: text,
    coupon_id: z.int().nullable(),
    reasons: z.array(z.enum(quoteReasons)),
    subtotal: z.int(),
    eligible_subtotal: z.int(),
    discount: z.int(),
    total: z.int(),
    lines: z.array(
      z
        .object({ product_key: text, amount: z.int(), quantity: z.int(), discount: z.int() })
        .transform(({ product_key: productKey, ...line }) => ({ productKey, ...line })),
    ),
  })
  .transform(({ coupon_id: couponId, eligible_subtotal: eligibleSubtotal, ...rest }): Quote => ({
    couponId,
    eligibleSubtotal,
    ...rest,
  }));

const redemption = z.object({
  data: z.intersection(quote, z.object({ order: z.string(), over_limit: z.boolean() })),
});

/** Reads the stored redemption of this order. */
export function readRedemption(body: JsonObject, order: string): Parsed<StoredRedemption> {
  const read = redemption.safeParse(body);
  if (!read.success) return { fault: 'the response is not that of a redemption' };
  const { order: answered, over_limit: isOverLimit, ...quoted } = read.data.data;
  if (answered !== order) return { fault: 'the response is about another order' };
  return { value: { quote: quoted, isOverLimit } };
}
