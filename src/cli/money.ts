import { UsageError } from './command.ts';

/** The cents of an amount such as `5.00`, `5` or `5,00`; null if the text is no amount. */
export function moneyOf(text: string): number | null {
  const match = /^(?<whole>\d{1,12})(?:[.,](?<part>\d{1,2}))?$/.exec(text);
  if (match?.groups === undefined) return null;
  const { whole = '0', part = '' } = match.groups;
  return Number(whole) * 100 + Number(part.padEnd(2, '0'));
}

/**
 * The cents of an amount on the command line, `5.00` or `500c`. Throws a `UsageError` for a number alone, which could be
 * money or cents, and for other text. `before`: what stands before the amount, such as `--amount-off `.
 */
export function readCents(before: string, text: string): number {
  const cents = /^(\d{1,14})c$/i.exec(text)?.[1];
  if (cents !== undefined) return Number(cents);
  if (/^\d+$/.test(text))
    throw new UsageError(`${before}${text} could be money or cents: use ${text}.00 or ${text}c`);
  const amount = moneyOf(text);
  if (amount === null) throw new UsageError(`${before}${text} is not an amount such as 5.00 or 500c`);
  return amount;
}
