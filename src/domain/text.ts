/** Whether a text has more characters, as JSON Schema counts them; JavaScript counts some twice. */
export function isLonger(text: string, maximum: number): boolean {
  return text.length > maximum && Array.from(text).length > maximum;
}
