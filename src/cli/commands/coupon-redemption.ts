import { z } from 'zod';
import { type QuoteObject, quoteObject, redemptionObject } from '../../wire/checkout.ts';
import { defineRequest, pathOf, requestAndShow } from '../client/request.ts';
import { defineCommand, positional, textOption, UsageError } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { type Cell, formatCents, formatFields, formatTable, instant, type Shown } from '../format.ts';
import { readCents } from '../values.ts';

const redemptionsPath = '/agent/v1/redemptions';

const cartOptions = {
  items: {
    ...positional(
      'KEY=PRICE or KEY=PRICExQUANTITY, on an agent also KEY=PRICE@COLLECTION,…; a price is 5.00 or 500c (cents)',
    ),
    array: true,
  },
  currency: textOption('Three letters'),
} as const;

type Item = { product_key: string; amount: number; quantity: number; collection_ids?: string[] };

export const redemptionCommands = [
  defineRequest({
    command: 'quote <code> <items..>',
    describe: 'Show the discount of a coupon for a cart',
    builder: { code: positional('What the customer entered'), ...cartOptions },
    examples: [
      ['latchkey coupon quote SPRING RGsF=19.99x2 Ab12=500c', 'two pieces for 19.99 each, and one for 5.00'],
    ],
    request: ({ code, items, currency }) => ({
      method: 'POST',
      path: '/agent/v1/quote',
      json: { code, currency, items: items.map(readItem) },
    }),
    view: {
      schema: quoteObject,
      show: (quote) => formatQuote(quote),
      exitCode: ({ redeemable }) => (redeemable ? exitCode.done : exitCode.failed),
    },
  }),
  defineRequest({
    command: 'redeem <code> <order> <items..>',
    describe: 'Redeem a coupon for an order, once',
    builder: {
      code: positional('What the customer entered'),
      order: positional('Your own id of the order that uses the coupon'),
      ...cartOptions,
    },
    examples: [
      ['latchkey coupon redeem SPRING order-1017 RGsF=19.99x2', 'safe to repeat: an order counts once'],
    ],
    request: ({ code, order, items, currency }) => ({
      method: 'POST',
      path: redemptionsPath,
      json: { order, code, currency, items: items.map(readItem) },
    }),
    view: {
      schema: redemptionObject,
      show: ({ order, redeemed_at: at, ...quote }) => formatQuote(quote, { order, redeemed: instant(at) }),
    },
  }),
  defineCommand({
    command: 'void <order>',
    describe: 'Undo a redemption after a refund',
    builder: { order: positional('The order that was refunded') },
    examples: [['latchkey coupon void order-1017', 'its use no longer counts']],
    handler: async (args, output) => {
      const { order } = args;
      const call = { method: 'DELETE', path: pathOf(redemptionsPath, order) } as const;
      const show = (): string => `Coupon use of order ${order} was undone`;
      return await requestAndShow(args, output, call, { schema: z.null(), show });
    },
  }),
];

/** Reads `KEY=PRICExQUANTITY@COLLECTION,…`. The last `=` ends the key. Throws a `UsageError` for other text. */
export function readItem(text: string): Item {
  const match = /^(?<key>.+)=(?<price>[\d.,]+c?)(?:x(?<quantity>\d+))?(?:@(?<collections>.+))?$/s.exec(text);
  const { key, price = '', quantity = '1', collections } = match?.groups ?? {};
  if (key === undefined)
    throw new UsageError(
      `${text} is not a valid item. Use KEY=PRICE or KEY=PRICExQUANTITY, with a price such as 5.00 or 500c`,
    );
  return {
    product_key: key,
    amount: readCents(`${key}=`, price),
    quantity: Number(quantity),
    ...(collections !== undefined && { collection_ids: collections.split(',') }),
  };
}

function formatQuote(
  { code, redeemable, reasons, subtotal, discount, total, lines, scope }: QuoteObject,
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
