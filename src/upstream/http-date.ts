const maximumRetryAfterMs = 86_400_000;

/** Reads an HTTP date in any of its three forms (RFC 9110 section 5.6.7) as epoch ms; null when it is none. */
export function parseHttpDate(text: string): number | null {
  // Date.parse alone takes nearly anything for a date; every HTTP date begins with a weekday.
  if (!/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /.test(text)) return null;
  const epochMs = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(epochMs) ? null : epochMs;
}

/**
 * Reads `Retry-After` (RFC 9110 section 10.2.3) as a wait in ms, 0 to 24 h; null when it is neither seconds
 * nor a date. A date counts from `now`, in epoch ms: the answer's own clock, where it showed one.
 */
export function parseRetryAfter(text: string, now: number): number | null {
  const value = text.trim();
  if (/^-?\d+$/.test(value)) return bounded(Number(value) * 1_000);
  const date = parseHttpDate(value);
  return date === null ? null : bounded(date - now);
}

function bounded(ms: number): number {
  return Math.min(Math.max(ms, 0), maximumRetryAfterMs);
}
