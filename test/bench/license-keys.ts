import { hash } from 'node:crypto';
import { licenseKeyFrom } from '../../src/domain/license-key.ts';

/** The license key of a number: the same in every process, and as scattered as keys that are drawn. */
export function licenseKeyOf(number: number): string {
  return licenseKeyFrom(hash('sha256', `license ${number}`, 'buffer'));
}
