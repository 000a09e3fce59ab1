import { positional, textOption, UsageError } from '../../command.ts';
import { type Cell, formatCents, formatFields, formatTable, type Shown } from '../../format.ts';
import { readCents } from '../../money.ts';
import type { QuoteObject } from '../../../wire/checkout.ts';

export const redemptionsPath = '/agent/v1/redemptions';

export const cartOptions = {
  items: {
    ...positional(
      'KEY=PRICE or KEY=PRICExQUANTITY, on an agent also KEY=PRICE@COLLECTION,…; a price is 5.00 or 500c (cents)',
    ),
    array: true,
  },
  currency: textOption('Three letters'),
} as const;

export type Item = { product_key: string; amount: number; quantity: number; collection_ids?: string[] };

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

export function formatQuote(
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
