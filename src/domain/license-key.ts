import { isLonger, plainText } from './text.ts';

const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const generated = /^[A-HJ-NP-Z2-9]{5}(?:-[A-HJ-NP-Z2-9]{5}){3}$/i;
const containsGenerated = /[A-HJ-NP-Z2-9]{5}(?:-[A-HJ-NP-Z2-9]{5}){3}/i;
export const maximumLicenseKeyLength = 100;

/** How many random bytes make a license key. */
export const licenseKeyBytes = 20;

/**
 * Makes a license key: four groups of five from an alphabet of 32, so that each byte's low five bits
 * choose one letter without bias.
 */
export function licenseKeyFrom(bytes: Uint8Array): string {
  const letters = Array.from(bytes.subarray(0, licenseKeyBytes), (byte) => alphabet.charAt(byte & 31));
  return [0, 5, 10, 15].map((start) => letters.slice(start, start + 5).join('')).join('-');
}

/**
 * Brings a license key to the form under which it is stored: white space around it is dropped, and a
 * key of the generated format is found in any letter case. Null when nothing, or over 100 characters, is left.
 */
export function parseLicenseKey(text: string): string | null {
  const trimmed = text.trim();
  // Invisible characters may make a key too long.
  if (isLonger(trimmed, maximumLicenseKeyLength)) return storedForm(plainText(trimmed).trim());
  return storedForm(trimmed);
}

/** Brings a pasted license key to the form under which it was most likely issued: see `plainText`. */
export function parsePlainLicenseKey(text: string): string | null {
  return storedForm(plainText(text).trim());
}

/** Whether a license key may be issued: keys that look alike are one key. */
export function isPlainLicenseKey(licenseKey: string): boolean {
  return plainText(licenseKey) === licenseKey;
}

function storedForm(trimmed: string): string | null {
  if (trimmed === '' || isLonger(trimmed, maximumLicenseKeyLength)) return null;
  return generated.test(trimmed) ? trimmed.toUpperCase() : trimmed;
}

/** Why a license key is not issued. */
export const unusualKey = {
  parameter: 'license_key',
  code: 'malformed',
  detail: 'license_key must not contain invisible characters, full-width letters or typographic dashes.',
} as const;

/** Whether a key of the generated format stands anywhere in a text, which must not be logged then. */
export function containsLicenseKey(text: string): boolean {
  return containsGenerated.test(text);
}

/** Joins the groups of a key of the generated format that stand apart; null when they do not make one. */
export function joinLicenseKey(groups: readonly string[]): string | null {
  const joined = groups.join('-');
  return generated.test(joined) ? joined : null;
}

/** How many other spellings of a license key an agent keeps: a caller can think of millions. */
export const maxAliases = 16;
