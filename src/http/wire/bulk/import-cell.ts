import type { z } from 'zod';
import { isInstant, parseDatetime } from '../../../domain/datetime.ts';
import { kind, refined, refuse } from '../common/kind.ts';

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

/** An instant of an import: an RFC 3339 datetime, or one without its zone, which is UTC, or a date. As epoch ms. */
function instantOf(timeOfDate: string): z.ZodType<number> {
  return kind({ type: 'string', pattern: dated.source }, (given, issues) => {
    const instant =
      typeof given === 'string'
        ? (parseDatetime(given) ?? parseDatetime(completed(given, timeOfDate)))
        : null;
    if (instant !== null && isInstant(instant)) return instant;
    return refuse(issues, 'not_a_datetime', 'must be a date or an RFC 3339 datetime');
  });
}

function completed(given: string, timeOfDate: string): string {
  return /^\d{4}-\d{2}-\d{2}$/.test(given) ? `${given}T${timeOfDate}Z` : `${given}Z`;
}

/** A date is the start of that day. */
export const instantCell: z.ZodType<number> = instantOf('00:00:00');

/** A date is the last second of that day. */
export const endCell: z.ZodType<number> = instantOf('23:59:59');

/** A long number that a spreadsheet rounds (`1.9E+18`), an error of a formula (`#NAME?`), or a column too narrow. */
const damaged =
  /^(?:\d(?:[.,]\d+)?E\+\d{2,3}|#(?:NAME\?|VALUE!|REF!|DIV\/0!|NUM!|NULL!|N\/A|SPILL!|CALC!)|#{2,})$/i;

/** Text that names a thing, as long as no spreadsheet has written something else in its place. */
export function undamaged<Value extends string | null>(text: z.ZodType<Value>): z.ZodType<Value> {
  return refined(text, {}, (given, issues) =>
    given !== null && damaged.test(given)
      ? refuse(
          issues,
          'malformed',
          `is ${given.slice(0, 32)}, which a spreadsheet writes in place of the text: format the column as text and fill it again`,
        )
      : given,
  );
}
