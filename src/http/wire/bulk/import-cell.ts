import type { z } from 'zod';
import { isInstant, parseDatetime } from '../../../domain/datetime.ts';
import { kind, refuse } from '../common/kind.ts';

/*
 * Parameters of imported rows that are read as stores export them, and not only as this interface writes
 * them.
 */

const states: ReadonlyMap<string, boolean> = new Map([
  ...['true', 'yes', '1'].map((word): [string, boolean] => [word, true]),
  ...['false', 'no', '0'].map((word): [string, boolean] => [word, false]),
]);

/** `true` or `false`, `yes` or `no`, `1` or `0`, in any letter case. */
export const stateCell: z.ZodType<boolean> = kind(
  // CSV has no other types than text.
  { type: 'boolean' },
  (given, issues) =>
    states.get(String(given).toLowerCase()) ??
    refuse(issues, 'not_a_boolean', 'must be true or false, yes or no, 1 or 0'),
);

const dated = /^\d{4}-\d\d-\d\d/;

/** An RFC 3339 datetime, also without its zone, or a date, which begins: both are UTC then. As epoch ms. */
export const instantCell: z.ZodType<number> = kind(
  { type: 'string', pattern: dated.source },
  (given, issues) => {
    const instant =
      typeof given === 'string' ? (parseDatetime(given) ?? parseDatetime(completed(given))) : null;
    if (instant !== null && isInstant(instant)) return instant;
    return refuse(issues, 'not_a_datetime', 'must be a date or an RFC 3339 datetime');
  },
);

function completed(given: string): string {
  return /^\d{4}-\d{2}-\d{2}$/.test(given) ? `${given}T00:00:00Z` : `${given}Z`;
}
