import { parseDuration } from '../config/unit.ts';
import { formatDatetime, parseDatetime } from '../domain/datetime.ts';
import { UsageError } from './command.ts';

/**
 * Reads an option that names an instant: a datetime (RFC 3339), a date (its start in UTC), or a duration
 * before or after now. Gives it as the interface writes it.
 */
export function readInstant(
  option: string,
  given: string | undefined,
  side: 'before' | 'after',
): string | undefined {
  if (given === undefined) return undefined;
  const durationMs = parseDuration(given);
  const instant =
    durationMs === undefined
      ? parseDatetime(/^\d{4}-\d{2}-\d{2}$/.test(given) ? `${given}T00:00:00Z` : given)
      : Date.now() + (side === 'before' ? -durationMs : durationMs);
  if (instant === null || Math.abs(instant) > latest) {
    throw new UsageError(
      `--${option} must be a duration such as 24h or 90d, a date, or a datetime such as 2026-12-31T18:00:00Z`,
    );
  }
  return formatDatetime(instant);
}

/** The end of the year 9999, in epoch ms. */
const latest = 253_402_300_799_999;
