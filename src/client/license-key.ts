const printableAscii = /^[\x20-\x7e]*$/;
const invisible = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufffc]/gu;
const dashes = /[\p{Pd}\p{Dash}\u02d7\u2043\u23af\u2500\u2501\u2796]/gu;

/** Reads a pasted license key as the agent does (src/domain/text.ts; this folder imports no other). */
export function plainText(text: string): string {
  if (printableAscii.test(text)) return text;
  return text.replace(invisible, '').normalize('NFKC').replace(invisible, '').replace(dashes, '-');
}
