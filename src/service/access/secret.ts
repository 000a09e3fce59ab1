import type { Random } from '../ports.ts';

/** A shorter one can be guessed: an authority takes none. An agent takes what its store gave. */
export const shortestSecret = 16;

/** Makes a secret of 256 bits; the prefix tells people, and secret scanners, what it is. */
export function newSecret(prefix: 'lk_api' | 'lk_prod' | 'lk_tok' | 'lk_log', random: Random): string {
  return `${prefix}_${hexadecimal(random.bytes(32))}`;
}

/** Makes a short identifier for something that was not given one. */
export function newIdentifier(random: Random): string {
  return hexadecimal(random.bytes(6));
}

function hexadecimal(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
