import { isInstant, parseDatetime } from '../domain/datetime.ts';

const isoDate =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2})?(?:[.,](\d{1,9}))?)? ?(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?$/i;
const mailDate =
  /^(?:[A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}(?::\d{2})? (?:GMT|UTC|[+-]\d{4})$/;
/** In seconds this is the year 2286, in ms the year 1970. */
const mostSeconds = 10_000_000_000;

/**
 * Reads a date as other systems write it, as epoch ms: ISO 8601 (without a zone it is UTC), RFC 2822, or a number of
 * seconds or ms since 1970; null when it is none of these.
 */
export function parseForeignDate(given: unknown): number | null {
  const epochMs = typeof given === 'string' ? parseText(given.trim()) : parseNumber(given);
  return epochMs !== null && isInstant(epochMs) ? epochMs : null;
}

function parseText(text: string): number | null {
  const iso = isoDate.exec(text);
  if (iso !== null) {
    const [, day, minutes = '00:00', seconds = ':00', fraction, zone] = iso;
    return parseDatetime(
      `${day}T${minutes}${seconds}${fraction === undefined ? '' : `.${fraction}`}${zoneOf(zone)}`,
    );
  }
  if (/^\d{9,13}$/.test(text)) return parseNumber(Number(text));
  const epochMs = mailDate.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(epochMs) ? null : epochMs;
}

/** As RFC 3339 writes it. */
function zoneOf(zone: string | undefined): string {
  const offset = /^([+-]\d{2}):?(\d{2})?$/.exec(zone ?? '');
  return offset === null ? 'Z' : `${offset[1]}:${offset[2] ?? '00'}`;
}

function parseNumber(given: unknown): number | null {
  if (typeof given !== 'number' || !Number.isFinite(given)) return null;
  return Math.round(Math.abs(given) < mostSeconds ? given * 1_000 : given);
}
