/** For example `1 key`, `2 keys`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** A part of a line as a sentence. A text of another program, with which it may end, can have its own full stop. */
export function asSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`.replace(/[^.!?]$/, '$&.');
}

/** The name in camelCase of a name in snake_case. */
export type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

export function camelCase(name: string): string {
  return name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Counts characters as JSON Schema does. `length` counts some characters twice. */
export function isLongerThan(text: string, maximum: number): boolean {
  return text.length > maximum && Array.from(text).length > maximum;
}

/** The end of the range of texts that begin with `text`, in the order of bytes: no character is greater. */
export function endOfPrefix(text: string): string {
  return `${text}\u{10FFFF}`;
}

/** Joins the lines of a text by spaces. */
export function oneLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}

const printableAscii = /^[\x20-\x7e]*$/;
/** Control and format characters, line separators, and characters that fonts do not show, also blanks of Braille. */
const invisible = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufffc]/gu;
/** Also characters that look like a dash: a modifier letter, a bullet, a mathematical sign and lines of boxes. */
const dashes = /[\p{Pd}\p{Dash}\u02d7\u2043\u23af\u2500\u2501\u2796]/gu;

/**
 * Undoes what text editors, web pages and input methods do to a pasted code: drops invisible characters, replaces
 * full-width and other compatible forms with the usual characters (NFKC), and replaces every dash with `-`.
 */
export function plainText(text: string): string {
  if (printableAscii.test(text)) return text;
  return text.replace(invisible, '').normalize('NFKC').replace(invisible, '').replace(dashes, '-');
}

const minuteMs = 60_000;

/** What is wrong with the clock. `storeAheadMs`: how far the clock of the store is ahead; null: not known. */
export function describeClock(storeAheadMs: number | null): string {
  if (storeAheadMs === null) return 'the clock of this machine has jumped or was set back';
  return `this machine and the store differ by ${describeSpan(Math.abs(storeAheadMs))}; one of the two is wrong`;
}

/** What to do about `describeClock`. */
export const clockAdvice =
  'compare this machine with another clock; if this machine is wrong, synchronize it by NTP';

/** A span in ms in the largest unit that has at least two. */
function describeSpan(ms: number): string {
  const minutes = Math.round(ms / minuteMs);
  if (minutes < 2 * 60) return `${minutes} minutes`;
  const hours = Math.round(minutes / 60);
  return hours < 2 * 24 ? `${hours} hours` : `${Math.round(hours / 24)} days`;
}

/** How much of the text of another program a message repeats. */
const maxMessageLength = 200;

/** The text of another program as one line without control characters. */
export function toOneLine(text: string): string {
  const line = text.replaceAll(/[\p{C}\s]+/gu, ' ').trim();
  return line.slice(0, maxMessageLength).toWellFormed();
}
