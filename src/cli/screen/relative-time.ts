const units = [
  ['year', 365 * 86_400, 730 * 86_400],
  ['month', 30 * 86_400, 60 * 86_400],
  ['day', 86_400, 48 * 3600],
  ['hour', 3600, 7200],
  ['minute', 60, 60],
  ['second', 1, 2],
] as const;

let format: Intl.RelativeTimeFormat | undefined;

/** Says how far an instant is from now (epoch ms), in whole units: `3 min ago`, `in 40 sec`. */
export function formatDistance(at: number, now: number): string {
  const seconds = (at - now) / 1000;
  // The unit is the largest of which there is more than one, so that little is lost by rounding.
  const [unit, size] = units.find(([, , from]) => Math.abs(seconds) >= from) ?? [null, 1];
  if (unit === null) return 'now';
  format ??= new Intl.RelativeTimeFormat('en', { style: 'short', numeric: 'always' });
  return format.format(Math.round(seconds / size), unit).replace('.', '');
}
