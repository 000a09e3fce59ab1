export const minuteMs = 60_000;
export const hourMs: number = 60 * minuteMs;
export const dayMs: number = 24 * hourMs;

/** When something ends (epoch ms), and its key. */
export type End = { at: number; key: string };

/** The last end that was reported. Ends at one instant are in the order of their keys; `key` null: all of them. */
export type ReportedEnd = { at: number; key: string | null };

const rfc3339 = /^(\d{4}-\d{2}-(\d{2}))[Tt ]((\d{2}):\d{2}:\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

/** Formats epoch ms as in the API: UTC, whole seconds, `2024-02-22T11:23:05+00:00` (RFC 3339). */
export function formatDatetime(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}+00:00`;
}

/** The years 1 to 9999, because the format has four digits for the year. */
const earliest = -62_135_596_800_000;
const latest = 253_402_300_799_999;

/** Whether `formatDatetime` can format an instant (epoch ms). */
export function isInstant(epochMs: number): boolean {
  return epochMs >= earliest && epochMs <= latest;
}

/** Parses an RFC 3339 datetime into epoch ms; null if it is malformed, or names a day or hour that does not exist. */
export function parseDatetime(text: string): number | null {
  const match = rfc3339.exec(text);
  if (match === null) return null;
  const [, day, dayOfMonth, time, hour, fraction = '', zone = 'Z'] = match;
  const asUtc = Date.parse(`${day}T${time}Z`);
  if (Number.isNaN(asUtc) || hour === '24' || !isInMonth(asUtc, Number(dayOfMonth))) return null;
  if (fraction === '' && (zone === 'Z' || zone === '+00:00')) return asUtc;
  const epochMs = Date.parse(text.toUpperCase().replace(' ', 'T'));
  return Number.isNaN(epochMs) ? null : epochMs;
}

/** `Date.parse` takes the 31st of a shorter month for the first day of the next month. */
function isInMonth(asUtc: number, dayOfMonth: number): boolean {
  return dayOfMonth <= 28 || new Date(asUtc).getUTCDate() === dayOfMonth;
}

/** A span of the calendar, such as `1y`. */
export type Span = { count: number; unit: 'd' | 'w' | 'mo' | 'y' };

/** `30d`, `2w`, `6mo` or `1y`, up to 9999. */
export const spanPattern: RegExp = /^([1-9]\d{0,3})(d|w|mo|y)$/;

/** Reads a span; null: the text is none. */
export function parseSpan(text: string): Span | null {
  const [, count, unit] = spanPattern.exec(text) ?? [];
  return unit === undefined ? null : { count: Number(count), unit: unit as Span['unit'] };
}

/** The same time of the day after a span, in UTC; in a shorter month its last day. */
export function addSpan(epochMs: number, { count, unit }: Span): number {
  if (unit === 'd' || unit === 'w') return epochMs + count * (unit === 'd' ? 1 : 7) * dayMs;
  const date = new Date(epochMs);
  const day = date.getUTCDate();
  date.setUTCMonth(date.getUTCMonth() + count * (unit === 'y' ? 12 : 1));
  if (date.getUTCDate() !== day) date.setUTCDate(0);
  return date.getTime();
}
