/** The part of a license key that a session may see: a read-only session gets `…LAST4~REFERENCE`. */
export function shownKey(licenseKey: string): string {
  return isMasked(licenseKey) ? licenseKey.slice(0, licenseKey.indexOf('~')) : licenseKey;
}

export function isMasked(licenseKey: string): boolean {
  return licenseKey.startsWith('…') && licenseKey.includes('~');
}

const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'long' });

const longestAgeS = 30 * 86_400;

/** `3 minutes ago`, `in 2 days`; beyond 30 days the date. */
export function fromNow(instant: string, now: number = Date.now()): string {
  const seconds = Math.round((Date.parse(instant) - now) / 1000);
  if (Math.abs(seconds) < 5) return 'now';
  if (Math.abs(seconds) > longestAgeS) return dayText(instant);
  const [unit, size] = units.find(([, each]) => Math.abs(seconds) >= each) ?? ['second', 1];
  return relative.format(Math.trunc(seconds / size), unit);
}

/** `5 days 2 hours`, `40 minutes`: the two largest units. */
export function duration(seconds: number): string {
  const start = units.findIndex(([, size]) => seconds >= size);
  if (start === -1) return '0 seconds';
  const [unit, size] = units[start] ?? units[3];
  const [smallUnit, smallSize] = units[start + 1] ?? [unit, size];
  const rest = smallUnit === unit ? 0 : Math.floor((seconds % size) / smallSize);
  const large = counted(Math.floor(seconds / size), unit);
  return rest === 0 ? large : `${large} ${counted(rest, smallUnit)}`;
}

const date = { day: 'numeric', month: 'short', year: 'numeric' } as const;
const time = { hour: '2-digit', minute: '2-digit', second: '2-digit' } as const;
const long = new Intl.DateTimeFormat('en-GB', { ...date, ...time, timeZoneName: 'short' });

/** The instant in the time zone of the browser: `3 May 2026, 14:05:00 CEST`. */
export function longTime(instant: string): string {
  return long.format(new Date(instant));
}

const dates = new Intl.DateTimeFormat('en-GB', date);

/** `3 May 2026`. */
export function dayText(instant: string): string {
  return dates.format(new Date(instant));
}

const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short' });
const clockWithZone = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  timeZoneName: 'short',
});
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** `30 Nov, 08:38 to 11:08 CET`. */
export function timeRange(from: number, to: number): string {
  const isSameDay = shortDay(from) === shortDay(to);
  const end = clockWithZone.format(to);
  return `${shortDay(from)}, ${clockTime(from)} to ${isSameDay ? '' : `${shortDay(to)}, `}${end}`;
}

/** `14:05`. */
export function clockTime(at: number): string {
  return clock.format(at);
}

/** `3 May`. */
export function shortDay(at: number): string {
  return day.format(at);
}

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

export function count(value: number): string {
  return numbers.format(value);
}

/** `1 change`, `2 changes`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
