import { joinLicenseKey } from '../domain/license-key.ts';
import { operand, UsageError } from './command.ts';

/** The license key of a command; its groups may be given apart, as people read them from paper. */
export const licenseKeyOperand: ReturnType<typeof operand> & { array: true } = {
  ...operand('License key; groups of a Latchkey key may be separate words'),
  array: true,
};

/** Reads the operand. */
export function readLicenseKey(words: readonly string[]): string {
  const [only, second] = words;
  const key = second === undefined ? only : joinLicenseKey(words);
  if (key !== null && key !== undefined) return key;
  throw new UsageError('One license key is expected; one with blanks in it stands in quotes');
}
