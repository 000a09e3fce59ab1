/** Writes how many there are: `1 key`, `2 keys`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Whether a text has more characters, as JSON Schema counts them; JavaScript counts some twice. */
export function isLonger(text: string, maximum: number): boolean {
  return text.length > maximum && Array.from(text).length > maximum;
}

/** Joins the lines of a text by spaces. */
export function oneLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}

const ordinary = /^[\x20-\x7e]*$/;
/** Characters that are not seen: format characters, line separators, and those that fonts leave out. */
const invisible = /[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const dashes = /[\p{Pd}\p{Dash}]/gu;

/**
 * Takes back what text editors, web pages and input methods do to a code that is pasted: invisible characters are
 * dropped, full-width and other compatible forms become the usual characters (NFKC), every dash becomes `-`.
 */
export function plainText(text: string): string {
  if (ordinary.test(text)) return text;
  return text.replace(invisible, '').normalize('NFKC').replace(invisible, '').replace(dashes, '-');
}
