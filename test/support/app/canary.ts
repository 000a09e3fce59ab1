/** A word that is part of every secret and license key of a test, and of no other text. */
const canary = 'canary';

/** The secrets that a text discloses, in any letter case and in the usual encodings of bytes. */
export function leaksIn(text: string, secrets: readonly string[]): string[] {
  const low = text.toLowerCase();
  const forms = [canary, ...secrets].flatMap((word) => {
    const bytes = Buffer.from(word);
    // Only whole groups of three bytes: their base64 does not depend on the bytes that follow.
    const base64 = bytes.subarray(0, bytes.length - (bytes.length % 3)).toString('base64');
    return [word, bytes.toString('hex'), base64, bytes.toString('base64url').replace(/=+$/, '')];
  });
  return forms
    .filter((form) => low.includes(form.toLowerCase()))
    .map((form) => around(text, low.indexOf(form.toLowerCase())));
}

function around(text: string, at: number): string {
  return text.slice(Math.max(0, at - 60), at + 60);
}
