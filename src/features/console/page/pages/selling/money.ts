/** An amount in cents as people write it: `€1,234.50`, or `1,234.50` if the currency is not known. */
export function money(cents: number, currency: string | null): string {
  const inCurrency = currency === null ? {} : ({ style: 'currency', currency } as const);
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return new Intl.NumberFormat('en', { ...digits, ...inCurrency }).format(cents / 100);
}

/** The cents of an amount that a person wrote, such as `49`, `49.9` or `49,90`; null if it is no amount. */
export function centsOf(text: string): number | null {
  const match = /^(?<whole>\d{1,12})(?:[.,](?<part>\d{1,2}))?$/.exec(text.trim());
  if (match?.groups === undefined) return null;
  const { whole = '0', part = '' } = match.groups;
  return Number(whole) * 100 + Number(part.padEnd(2, '0'));
}

/** What a field for an amount accepts, such as `5.00`; the browser shows the error at the field. */
export const amountPattern = String.raw`\s*\d{1,12}(?:[.,]\d{1,2})?\s*`;

/** What a field for a percentage accepts, such as `20%`. */
export const percentPattern = String.raw`\s*\d{1,3}(?:\.\d{1,16})?\s*%\s*`;
