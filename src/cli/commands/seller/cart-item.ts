import { UsageError } from '../../command.ts';

/** How a line of a cart is written on the command line. */
export const itemUsage: string =
  'KEY=CENTS, KEY=CENTSxPIECES; @COLLECTION,… where a cart says it, on an agent';

/** A line of a cart as the API takes it. */
export type Item = { product_key: string; amount: number; quantity: number; collection_ids?: string[] };

/** Reads `KEY=CENTSxPIECES@COLLECTION,…`; the last `=` ends the key. */
export function readItem(text: string): Item {
  const match = /^(?<key>.+)=(?<amount>\d+)(?:x(?<quantity>\d+))?(?:@(?<collections>.+))?$/s.exec(text);
  const { key, amount, quantity = '1', collections } = match?.groups ?? {};
  if (key === undefined) throw new UsageError(`${text} is no line of a cart: ${itemUsage}`);
  return {
    product_key: key,
    amount: Number(amount),
    quantity: Number(quantity),
    ...(collections !== undefined && { collection_ids: collections.split(',') }),
  };
}
