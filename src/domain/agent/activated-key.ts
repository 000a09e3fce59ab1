/*
 * Some stores activate a license key for one installation, and verify the two together. An agent stores such an activation
 * as a license of its own, under the license key and the id of the activation.
 */

const mark = ' #';

/** The key under which an activation is stored. */
export function activatedKey(licenseKey: string, activationId: string): string {
  return `${licenseKey}${mark}${activationId}`;
}

/** The license key and the activation that a stored key stands for. `activationId`: null if it is only a license key. */
export function partsOfKey(storedKey: string): { licenseKey: string; activationId: string | null } {
  const at = storedKey.lastIndexOf(mark);
  if (at < 0) return { licenseKey: storedKey, activationId: null };
  return { licenseKey: storedKey.slice(0, at), activationId: storedKey.slice(at + mark.length) };
}

/** All activations of a license key are stored between these two keys. */
export function activationsBetween(licenseKey: string): [first: string, last: string] {
  return [activatedKey(licenseKey, ''), activatedKey(licenseKey, '\u{10FFFF}')];
}

/** An activation that was sent to the store. Its answer is not known, or did not reach the caller. */
export type ActivationAttempt = {
  id: string;
  licenseKey: string;
  /** What the caller calls its installation. */
  name: string;
  /** Epoch ms. */
  sentAt: number;
  /** The activation, if the answer came after the caller had left. */
  activationId: string | null;
};

/** How many attempts are kept; the oldest are removed first. */
export const maxAttempts = 10_000;
