import { z } from 'zod';
import type { ParameterFault } from '../domain/problem/problem.ts';
import {
  maxCartLines,
  quoteReasons,
  subtotalOf,
  type Cart,
  type CartLine,
  type Quote,
  maxOrderLength,
  orderPattern,
  type Redemption,
} from '../domain/checkout/quote.ts';
import type { RoleName } from '../domain/role.ts';
import {
  boolean,
  datetime,
  identifier,
  integer,
  listOf,
  textMatching,
  texts,
  instant,
  parameters,
  type ParameterSet,
  type ValuesOf,
  type ParsedParameters,
  without,
} from './parameters.ts';
import { formatDatetime } from '../domain/time.ts';
import { pageShape } from './page.ts';

/** The limit for a body with a cart, instead of `limits.body_bytes`: room for a thousand lines. */
export const cartBytes = 262_144;

const quotedLine = z
  .object({ product_key: z.string(), amount: z.int(), quantity: z.int(), discount: z.int() })
  .meta({ id: 'QuotedLine' });

const quoteShape = {
  code: z.string(),
  coupon_id: z.int().nullable(),
  redeemable: z.boolean(),
  reasons: z.array(z.enum(quoteReasons)).readonly(),
  subtotal: z.int(),
  eligible_subtotal: z.int(),
  discount: z.int(),
  total: z.int(),
  lines: z.array(quotedLine).readonly(),
  scope: z.literal('this_agent').optional(),
};

/** Only agents send `scope`. */
export const quoteObject = z.object(quoteShape).meta({ id: 'Quote' });

export type QuoteObject = z.infer<typeof quoteObject>;

/** An agent knows only its own redemptions, and says so in `scope`. */
export function serializeQuote(quote: Quote, role: RoleName): QuoteObject {
  return {
    code: quote.code,
    coupon_id: quote.couponId,
    redeemable: quote.reasons.length === 0,
    reasons: quote.reasons,
    subtotal: quote.subtotal,
    eligible_subtotal: quote.eligibleSubtotal,
    discount: quote.discount,
    total: quote.total,
    lines: quote.lines.map(({ productKey, amount, quantity, discount }) => {
      return { product_key: productKey, amount, quantity, discount };
    }),
    ...(role === 'agent' && { scope: 'this_agent' as const }),
  };
}

const head = parameters(
  {
    code: identifier,
    currency: textMatching(
      /^[A-Za-z]{3}$/,
      3,
      'must be the three letters of a currency (ISO 4217)',
    ).optional(),
    items: listOf(maxCartLines),
  },
  { unknown: 'refused' },
);

const line = parameters(
  {
    product_key: identifier,
    amount: integer(0),
    quantity: integer(1).prefault(1),
    collection_ids: texts.optional(),
    recurring: boolean.prefault(false),
  },
  { unknown: 'refused', id: 'CartLine' },
);

/** The parameters of a cart. Unknown parameters are refused: a misspelt one must not change the price. */
export const cartParameters: ParameterSet<{ cart: Cart }> = {
  schema: head.schema.extend({ items: z.array(line.schema).min(1).max(maxCartLines) }).meta({ id: 'Cart' }),
  read(raw) {
    const reading = head.read(raw);
    const { code, currency, items = [] } = reading.values;
    const read = items.map((item, index) => readLine(item, `items[${index}]`));
    const lines = read.flatMap((each) => (each.ok ? lineOf(each.values) : []));
    const faults = [reading, ...read].flatMap((each) => (each.ok ? [] : each.faults));
    if (subtotalOf(lines) > Number.MAX_SAFE_INTEGER) faults.push(tooMuch);
    if (code === undefined || faults.length > 0) return { ok: false, values: {}, faults };
    // Customers paste codes with white space around them; no code contains any.
    const cart = { code: code.trim(), currency: currency?.toUpperCase() ?? null, lines };
    return { ok: true, values: { cart } };
  },
};

const tooMuch: ParameterFault = {
  parameter: 'items',
  code: 'out_of_range',
  detail: `items must add up to at most ${Number.MAX_SAFE_INTEGER} cents.`,
};

type LineParameters = ValuesOf<typeof line>;

function readLine(item: unknown, name: string): ParsedParameters<LineParameters> {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) {
    const fault = { parameter: name, code: 'not_an_object', detail: `${name} must be an object.` };
    return { ok: false, values: {}, faults: [fault] };
  }
  const members = Object.entries(item).filter(([, member]) => member !== null);
  return line.read(new Map(members), `${name}.`);
}

function lineOf({ collectionIds = [], ...rest }: LineParameters): CartLine {
  return { ...rest, collectionIds };
}

export const redemptionObject = z
  .object({
    order: z.string(),
    ...quoteShape,
    redeemed_at: instant,
    over_limit: z.boolean(),
  })
  .meta({ id: 'Redemption' });

export type RedemptionObject = z.infer<typeof redemptionObject>;

export const redemptionList = z
  .object({ redemptions: z.array(redemptionObject) })
  .meta({ id: 'RedemptionList' });

export function serializeRedemption(
  { order, quote, redeemedAt, overLimit }: Redemption,
  role: RoleName,
): RedemptionObject {
  return {
    order,
    ...serializeQuote(quote, role),
    redeemed_at: formatDatetime(redeemedAt),
    over_limit: overLimit === true,
  };
}

const order = parameters({
  order: textMatching(
    orderPattern,
    maxOrderLength,
    `must have 1 to ${maxOrderLength} characters, no control characters, and not be . or ..`,
  ),
  answered_at: datetime.optional(),
});

/** `answeredAt`: when an agent, or a shop without a connection, gave the customer the discount (epoch ms). */
export const redemptionParameters: ParameterSet<{
  order: string;
  cart: Cart;
  answeredAt?: number | undefined;
}> = {
  schema: order.schema.extend(cartParameters.schema.shape).strict().meta({ id: 'Order' }),
  read(raw) {
    const named = order.read(raw);
    const carried = cartParameters.read(without(without(raw, 'order'), 'answered_at'));
    if (named.ok && carried.ok) return { ok: true, values: { ...named.values, ...carried.values } };
    const faults = [named, carried].flatMap((each) => (each.ok ? [] : each.faults));
    return { ok: false, values: { ...named.values, ...carried.values }, faults };
  },
};

/** `GET /agent/v1/redemptions`. */
export const redemptionQuery = parameters({
  coupon_id: integer(Number.MIN_SAFE_INTEGER),
  ...pageShape('redemptions'),
});
