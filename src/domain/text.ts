/** For example `1 key`, `2 keys`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
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
/** Format characters, line separators, and characters that fonts do not show. */
const invisible = /[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const dashes = /[\p{Pd}\p{Dash}]/gu;

/**
 * Undoes what text editors, web pages and input methods do to a pasted code: drops invisible characters, replaces
 * full-width and other compatible forms with the usual characters (NFKC), and replaces every dash with `-`.
 */
export function plainText(text: string): string {
  if (printableAscii.test(text)) return text;
  return text.replace(invisible, '').normalize('NFKC').replace(invisible, '').replace(dashes, '-');
}
