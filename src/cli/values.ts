import { formatReason } from '../config/errors.ts';
import { readFileOrInput } from '../config/file/named-file.ts';
import { parseDuration } from '../config/value/unit.ts';
import { moneyOf } from '../domain/money.ts';
import { formatDatetime, isInstant, parseDatetime } from '../domain/time.ts';
import { licenseKeysIn } from '../domain/license.ts';
import { CommandError, positional, textOption, UsageError } from './command.ts';
import type { Output } from './output.ts';

/** The license key of a command. People read its groups from paper as separate words. */
export const licenseKeyPositional = {
  ...positional('One license key; groups of a Latchkey key may be separate words'),
  array: true,
} as const;

export function readLicenseKey(words: readonly string[]): string {
  const [only, second] = words;
  if (only !== undefined && second === undefined) return only;
  const key = licenseKeysIn(words.join(' ')).at(-1);
  if (key !== undefined && !/\s/.test(key)) return key;
  throw new UsageError('Give one license key at a time. Put a key with blanks in quotes');
}

export const keepOldOption = textOption(
  'How long the old one stays valid, such as 24h; default: it stops at once. A still older one stops in any case',
);

export function readKeepOld(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const durationMs = parseDuration(text) ?? 0;
  if (durationMs >= 1000) return Math.round(durationMs / 1000);
  throw new UsageError('--keep-old must be a duration such as 24h or 7d, up to 30d');
}

/** Reads the secret in a file: every user of the machine can read a command line, so it must not contain a secret. */
export function readSecret(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readTextFile(file);
}

/** Reads a file without the white space around its text; `-` is standard input. */
export function readTextFile(file: string): string {
  try {
    return readFileOrInput(file).trim();
  } catch (error) {
    throw new CommandError([`latchkey: cannot read ${file}: ${formatReason(error)}`]);
  }
}

const plainDate = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Reads a point in time: a datetime (RFC 3339), a date (its start in UTC), or a duration before or after now. Returns
 * it in the format of the HTTP interface.
 */
export function readInstant(
  option: string,
  text: string | undefined,
  side: 'before' | 'after',
): string | undefined {
  if (text === undefined) return undefined;
  const durationMs = parseDuration(text);
  const instant =
    durationMs === undefined
      ? parseDatetime(plainDate.test(text) ? `${text}T00:00:00Z` : text)
      : Date.now() + (side === 'before' ? -durationMs : durationMs);
  if (instant === null || !isInstant(instant)) {
    throw new UsageError(
      `--${option} must be a duration such as 24h or 90d, a date, or a datetime such as 2026-12-31T18:00:00Z`,
    );
  }
  return formatDatetime(instant);
}

/** A plain date on the command line, and the point in time that it stands for. */
export type PlainDate = { readonly option: string; readonly date: string; readonly instant: string };

/** Reads points in time. A plain date stands for the start of its day in UTC or for the end, as `edges` says. */
export function readDates<Option extends string>(
  texts: Readonly<Record<Option, string | undefined>>,
  edges: Readonly<Record<Option, 'start' | 'end'>>,
  side: 'before' | 'after',
): { readonly dates: Partial<Record<Option, string>>; readonly plainDates: readonly PlainDate[] } {
  const dates: Partial<Record<Option, string>> = {};
  const plainDates: PlainDate[] = [];
  for (const option of Object.keys(edges) as Option[]) {
    const text = texts[option];
    if (text === undefined) continue;
    const isDate = plainDate.test(text);
    const time = edges[option] === 'start' ? '00:00:00Z' : '23:59:59Z';
    const instant = readInstant(option, isDate ? `${text}T${time}` : text, side);
    if (instant === undefined) continue;
    dates[option] = instant;
    if (isDate) plainDates.push({ option, date: text, instant });
  }
  return { dates, plainDates };
}

export function printDates(plainDates: readonly PlainDate[], output: Output): void {
  if (plainDates.length === 0) return;
  output.printError(
    plainDates.map(({ option, date, instant }) => `--${option} ${date} is taken as ${instant} (UTC)`),
  );
}

/**
 * The cents of an amount on the command line, `5.00` or `500c`. Throws a `UsageError` for a number alone, which could be
 * money or cents, and for other text. `before`: what stands before the amount, such as `--amount-off `.
 */
export function readCents(before: string, text: string): number {
  const cents = /^(\d{1,14})c$/i.exec(text)?.[1];
  if (cents !== undefined) return Number(cents);
  if (/^\d+$/.test(text))
    throw new UsageError(`${before}${text} could be money or cents: use ${text}.00 or ${text}c`);
  const amount = moneyOf(text);
  if (amount === null) throw new UsageError(`${before}${text} is not an amount such as 5.00 or 500c`);
  return amount;
}
