import { isLongerThan, plainText } from './text.ts';

const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const generated = /^[A-HJ-NP-Z2-9]{5}(?:-[A-HJ-NP-Z2-9]{5}){3}$/i;
const containsGenerated = /[A-HJ-NP-Z2-9]{5}(?:-[A-HJ-NP-Z2-9]{5}){3}/i;
export const maximumLicenseKeyLength = 100;

/** The number of random bytes for one license key. */
export const licenseKeyBytes = 20;

/**
 * Generates a license key: four groups of five letters. The alphabet has 32 letters, so the low five bits of a byte
 * choose a letter without bias.
 */
export function licenseKeyFrom(bytes: Uint8Array): string {
  const letters = Array.from(bytes.subarray(0, licenseKeyBytes), (byte) => alphabet.charAt(byte & 31));
  return [0, 5, 10, 15].map((start) => letters.slice(start, start + 5).join('')).join('-');
}

/**
 * Normalizes a license key to its stored form: trims white space, and ignores the letter case of a key in the generated
 * format. Null if nothing, or more than 100 characters, is left.
 */
export function parseLicenseKey(text: string): string | null {
  const trimmed = text.trim();
  // Invisible characters may make a key too long.
  if (isLongerThan(trimmed, maximumLicenseKeyLength)) return storedForm(plainText(trimmed).trim());
  return storedForm(trimmed);
}

/** The license key that was most likely issued, from a pasted key: see `plainText`. */
export function parsePlainLicenseKey(text: string): string | null {
  return storedForm(plainText(text).trim());
}

/** Whether a license key may be issued. Keys that look alike count as the same key. */
export function isPlainLicenseKey(licenseKey: string): boolean {
  return plainText(licenseKey) === licenseKey;
}

function storedForm(trimmed: string): string | null {
  if (trimmed === '' || isLongerThan(trimmed, maximumLicenseKeyLength)) return null;
  return generated.test(trimmed) ? trimmed.toUpperCase() : trimmed;
}

/** Why a license key that is not plain is not issued. */
export const malformedKey = {
  parameter: 'license_key',
  code: 'malformed',
  detail: 'license_key must not contain invisible characters, full-width letters or typographic dashes.',
} as const;

/** Whether a text contains a key in the generated format, and so must not be logged. */
export function containsLicenseKey(text: string): boolean {
  return containsGenerated.test(text);
}

/** Joins separate groups into a key of the generated format; null if the result is not such a key. */
export function joinLicenseKey(groups: readonly string[]): string | null {
  const joined = groups.join('-');
  return generated.test(joined) ? joined : null;
}

/** How many aliases of a license key an agent keeps. A limit is needed because a caller can send millions. */
export const maxAliases = 16;
