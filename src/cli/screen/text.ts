/**
 * Replaces control characters and line ends by visible characters such as ␛: text of a buyer must not control the
 * terminal or look like another line.
 */
export function toVisible(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, pictureOf)
    .replaceAll(/[\p{Bidi_Control}\u2028\u2029]/gu, replacement);
}

/** Does the same for text that consists of lines. */
export function toVisibleLines(text: string): string {
  return text.split('\n').map(toVisible).join('\n');
}

const replacement = '\u{FFFD}';

function pictureOf(character: string): string {
  const code = character.charCodeAt(0);
  if (code === 0x7f) return '\u2421';
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : replacement;
}

/** The number of terminal columns of a visible text. */
export type WidthOf = (text: string) => number;

/** Characters of one column, for which no library is needed: Latin, some punctuation, arrows, control pictures. */
const narrow = /^[\x20-\x7E\u00A1-\u00AC\u00AE-\u024F\u2013-\u2026\u2190-\u2193\u2400-\u2421]*$/;

/** The function that measures these texts. Loads a library only if they need it. */
export async function measureOf(texts: Iterable<string>): Promise<WidthOf> {
  for (const text of texts) {
    if (narrow.test(text)) continue;
    const { default: widthOf } = await import('string-width');
    return (measured) => (narrow.test(measured) ? measured.length : widthOf(measured));
  }
  return (text) => text.length;
}

const units = [
  ['year', 365 * 86_400, 730 * 86_400],
  ['month', 30 * 86_400, 60 * 86_400],
  ['day', 86_400, 48 * 3600],
  ['hour', 3600, 7200],
  ['minute', 60, 60],
  ['second', 1, 2],
] as const;

let format: Intl.RelativeTimeFormat | undefined;

/** Writes the distance from now (epoch ms) in whole units: `3 min ago`, `in 40 sec`. */
export function formatDistance(at: number, now: number): string {
  const seconds = (at - now) / 1000;
  // The largest unit of which there is more than one, so that rounding loses little.
  const [unit, size] = units.find(([, , from]) => Math.abs(seconds) >= from) ?? [null, 1];
  if (unit === null) return 'now';
  format ??= new Intl.RelativeTimeFormat('en', { style: 'short', numeric: 'always' });
  return format.format(Math.round(seconds / size), unit).replace('.', '');
}
