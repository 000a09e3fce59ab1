import { z } from 'zod';
import { type AnswerView, ask, defineRequest } from '../../client/ask.ts';
import { type Command, defineCommand, operand, textOption } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { type Cell, formatCents, formatFields, formatTable, instant, type Shown } from '../../format.ts';
import { itemUsage, readItem } from './cart-item.ts';

const redemptions = '/agent/v1/redemptions';

/** What a coupon takes off a cart (src/http/README.md, Coupons at checkout). */
const quote = z.object({
  code: z.string(),
  coupon_id: z.int().nullable(),
  redeemable: z.boolean(),
  reasons: z.array(z.string()),
  subtotal: z.int(),
  discount: z.int(),
  total: z.int(),
  lines: z.array(
    z.object({ product_key: z.string(), amount: z.int(), quantity: z.int(), discount: z.int() }),
  ),
  scope: z.string().optional(),
});

type Quote = z.infer<typeof quote>;

const quoteView: AnswerView<Quote> = {
  schema: quote,
  show: (given) => formatQuote(given),
  judge: ({ redeemable }) => (redeemable ? exitCode.done : exitCode.failed),
};

/** `coupon quote`. */
export const quoteCoupon: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('code', operand('What the customer entered'))
      .positional('items', { ...operand(itemUsage), array: true })
      .option('currency', textOption('Three letters'))
      .example(
        'latchkey coupon quote SPRING RGsF=1999x2 Ab12=500',
        'two pieces for 19.99 each, and one for 5.00',
      ),
  ({ code, items, currency }) => ({
    method: 'POST',
    path: '/agent/v1/quote',
    json: { code, currency, items: items.map(readItem) },
  }),
  quoteView,
);

const redemption = quote.extend({ order: z.string(), redeemed_at: z.string() });

type Redemption = z.infer<typeof redemption>;

const redemptionView: AnswerView<Redemption> = {
  schema: redemption,
  show: ({ order, redeemed_at: at, ...given }) => formatQuote(given, { order, redeemed: instant(at) }),
};

/** `coupon redeem`. */
export const redeemCoupon: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('code', operand('What the customer entered'))
      .positional('order', operand('Your own id of the order that uses the coupon'))
      .positional('items', { ...operand(itemUsage), array: true })
      .option('currency', textOption('Three letters'))
      .example(
        'latchkey coupon redeem SPRING order-1017 RGsF=1999x2',
        'safe to repeat: an order counts once',
      ),
  ({ code, order, items, currency }) => ({
    method: 'POST',
    path: redemptions,
    json: { order, code, currency, items: items.map(readItem) },
  }),
  redemptionView,
);

/** `coupon void`. */
export const voidRedemption: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('order', operand('The order that was refunded'))
      .example('latchkey coupon void order-1017', 'its use no longer counts'),
  (args, output) => {
    const { order } = args;
    const request = { method: 'DELETE', path: `${redemptions}/${encodeURIComponent(order)}` } as const;
    const show = (): string => `order ${order}: its use of the coupon is given back`;
    return ask(args, output, request, { schema: z.null(), show });
  },
);

/** Writes a quote, after `first`. */
function formatQuote(
  { code, redeemable, reasons, subtotal, discount, total, lines, scope }: Quote,
  first: Readonly<Record<string, Cell>> = {},
): Shown {
  const fields = formatFields({
    ...first,
    code,
    redeemable: redeemable ? 'yes' : `no: ${reasons.join(', ')}`,
    subtotal: formatCents(subtotal),
    discount: formatCents(discount),
    total: formatCents(total),
    counted: scope === 'this_agent' ? 'the redemptions of this agent alone' : null,
  });
  const rows = lines.map(({ product_key: product, amount, quantity, discount: off }) => {
    return { product, price: formatCents(amount), pieces: quantity, off: formatCents(off) };
  });
  return [fields, formatTable(rows)];
}
