const rfc3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

/** Writes epoch ms as the interface does: UTC, whole seconds, `2024-02-22T11:23:05+00:00` (RFC 3339). */
export function formatDatetime(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}+00:00`;
}

/** Reads an RFC 3339 datetime as epoch ms; null when it is none, or names a day or hour that does not exist. */
export function parseDatetime(text: string): number | null {
  const match = rfc3339.exec(text);
  if (match === null) return null;
  const [, year, month, day, hour, minute, second, fraction = '', zone = 'Z'] = match;
  const asUtc = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  // The 31st of a shorter month, and 24:00, count as the next day.
  const date = new Date(asUtc);
  if (date.getUTCDate() !== Number(day) || date.getUTCHours() !== Number(hour)) return null;
  if (fraction === '' && (zone === 'Z' || zone === '+00:00')) return asUtc;
  const epochMs = Date.parse(text.toUpperCase().replace(' ', 'T'));
  return Number.isNaN(epochMs) ? null : epochMs;
}
