/** The cents of an amount such as `5.00`, `5` or `5,00`; null if the text is no amount. */
export function moneyOf(text: string): number | null {
  const match = /^(?<whole>\d{1,12})(?:[.,](?<part>\d{1,2}))?$/.exec(text);
  if (match?.groups === undefined) return null;
  const { whole = '0', part = '' } = match.groups;
  return Number(whole) * 100 + Number(part.padEnd(2, '0'));
}
