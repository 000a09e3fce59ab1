/**
 * Replaces what a terminal obeys instead of showing it, line ends included: a text that a buyer wrote must neither
 * control the terminal nor look like another line. Control characters are shown by their pictures, such as ␛.
 */
export function toVisible(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, pictureOf)
    .replaceAll(/[\p{Bidi_Control}\u2028\u2029]/gu, replacement);
}

/** The same of a text that has lines of its own. */
export function toVisibleLines(text: string): string {
  return text.split('\n').map(toVisible).join('\n');
}

const replacement = '\u{FFFD}';

function pictureOf(character: string): string {
  const code = character.charCodeAt(0);
  if (code === 0x7f) return '\u2421';
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : replacement;
}
