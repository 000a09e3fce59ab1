import { z } from 'zod';
import { positional, textOption, UsageError } from '../../command.ts';
import { type Cell, formatCents, formatFields, formatTable, type Shown } from '../../format.ts';

export const redemptionsPath = '/agent/v1/redemptions';

/** The positionals and the option of commands about a cart. */
export const cartOptions = {
  items: {
    ...positional('KEY=CENTS or KEY=CENTSxQUANTITY; on an agent also KEY=CENTS@COLLECTION,…'),
    array: true,
  },
  currency: textOption('Three letters'),
} as const;

/** An item of a cart, as the HTTP interface takes it. */
export type Item = { product_key: string; amount: number; quantity: number; collection_ids?: string[] };

/** Reads `KEY=CENTSxQUANTITY@COLLECTION,…`. The last `=` ends the key. */
export function readItem(text: string): Item {
  const match = /^(?<key>.+)=(?<amount>\d+)(?:x(?<quantity>\d+))?(?:@(?<collections>.+))?$/s.exec(text);
  const { key, amount, quantity = '1', collections } = match?.groups ?? {};
  if (key === undefined)
    throw new UsageError(`${text} is not a valid item. Use KEY=CENTS or KEY=CENTSxQUANTITY`);
  return {
    product_key: key,
    amount: Number(amount),
    quantity: Number(quantity),
    ...(collections !== undefined && { collection_ids: collections.split(',') }),
  };
}

/** The discount of a coupon for a cart (src/http/README.md, Coupons at checkout). */
export const quote = z.object({
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

/** Shows a quote, after other fields. */
export function formatQuote(
  { code, redeemable, reasons, subtotal, discount, total, lines, scope }: z.infer<typeof quote>,
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
