import { parseDuration } from '../config/value/unit.ts';
import { formatDatetime, isInstant, parseDatetime } from '../domain/datetime.ts';
import { UsageError } from './command.ts';
import type { Output } from './output.ts';

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
  if (instant === null || !isInstant(instant)) {
    throw new UsageError(
      `--${option} must be a duration such as 24h or 90d, a date, or a datetime such as 2026-12-31T18:00:00Z`,
    );
  }
  return formatDatetime(instant);
}

/** A plain date that was given, and the instant that it was taken as. */
export type TakenDate = { readonly option: string; readonly date: string; readonly instant: string };

/**
 * Reads options that name instants, of which a plain date means the start of that day in UTC, or its end. Tells
 * which plain dates it took so.
 */
export function readDates<Option extends string>(
  given: Readonly<Record<Option, string | undefined>>,
  edges: Readonly<Record<Option, 'start' | 'end'>>,
  side: 'before' | 'after',
): { readonly dates: Partial<Record<Option, string>>; readonly taken: readonly TakenDate[] } {
  const dates: Partial<Record<Option, string>> = {};
  const taken: TakenDate[] = [];
  for (const option of Object.keys(edges) as Option[]) {
    const text = given[option];
    if (text === undefined) continue;
    const isDate = /^\d{4}-\d{2}-\d{2}$/.test(text);
    const time = edges[option] === 'start' ? '00:00:00Z' : '23:59:59Z';
    const instant = readInstant(option, isDate ? `${text}T${time}` : text, side);
    if (instant === undefined) continue;
    dates[option] = instant;
    if (isDate) taken.push({ option, date: text, instant });
  }
  return { dates, taken };
}

/** Says what plain dates were taken as, on standard error. */
export function sayDates(taken: readonly TakenDate[], output: Output): void {
  if (taken.length === 0) return;
  output.complain(
    taken.map(({ option, date, instant }) => `--${option} ${date} is taken as ${instant} (UTC)`),
  );
}
