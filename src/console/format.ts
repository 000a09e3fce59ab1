/** The part of a license key that a session may see: a read-only session gets `…LAST4~REFERENCE`. */
export function shownKey(licenseKey: string): string {
  return licenseKey.split('~', 1)[0] ?? licenseKey;
}

const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'long' });

/** `3 minutes ago`, `in 2 days`. */
export function fromNow(instant: string, now: number = Date.now()): string {
  const seconds = Math.round((Date.parse(instant) - now) / 1000);
  if (Math.abs(seconds) < 5) return 'now';
  const [unit, size] = units.find(([, each]) => Math.abs(seconds) >= each) ?? ['second', 1];
  return relative.format(Math.trunc(seconds / size), unit);
}

const long = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

/** The instant in the time zone of the browser. */
export function longTime(instant: string): string {
  return long.format(new Date(instant));
}

const numbers = new Intl.NumberFormat('en');

export function count(value: number): string {
  return numbers.format(value);
}

/** `1 change`, `2 changes`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
