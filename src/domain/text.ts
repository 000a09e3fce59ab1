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
