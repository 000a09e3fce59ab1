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
  const local = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const asUtc = Date.parse(`${local}Z`);
  if (Number.isNaN(asUtc) || !new Date(asUtc).toISOString().startsWith(local)) return null;
  const epochMs = Date.parse(`${local}${fraction}${zone.toUpperCase()}`);
  return Number.isNaN(epochMs) ? null : epochMs;
}
