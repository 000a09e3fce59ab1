/** The cents of an amount of money such as `5`, `5.00` or `4,95`; null for other text. */
export function moneyOf(text: string): number | null {
  const match = /^(?<whole>\d{1,12})(?:[.,](?<part>\d{1,2}))?$/.exec(text);
  if (match?.groups === undefined) return null;
  const { whole = '0', part = '' } = match.groups;
  return Number(whole) * 100 + Number(part.padEnd(2, '0'));
}
