/** How many columns of a terminal a visible text takes. */
export type WidthOf = (text: string) => number;

/** Characters of one column each, so that nothing is loaded for them: Latin, some punctuation, arrows, pictures. */
const narrow = /^[\x20-\x7E\u00A1-\u00AC\u00AE-\u024F\u2013-\u2026\u2190-\u2193\u2400-\u2421]*$/;

/** Gives the measure for some texts. */
export async function measureOf(texts: Iterable<string>): Promise<WidthOf> {
  for (const text of texts) {
    if (narrow.test(text)) continue;
    const { default: widthOf } = await import('string-width');
    return (measured) => (narrow.test(measured) ? measured.length : widthOf(measured));
  }
  return (text) => text.length;
}
