import type { Context, Random } from '../ports.ts';

/** A shorter one can be guessed: an authority takes none. An agent takes what its store gave. */
export const shortestSecret = 16;

/** Tells people, and secret scanners, what a secret is. */
export type SecretPrefix = 'lk_api' | 'lk_prod' | 'lk_tok' | 'lk_log';

/** Makes a secret of 256 bits. */
export function newSecret(prefix: SecretPrefix, random: Random): string {
  return `${prefix}_${hexadecimal(random.bytes(32))}`;
}

/** Makes a secret that callers are told once, and the digest of it, which is kept. */
export function newCredential(
  prefix: SecretPrefix,
  { random, digest }: Pick<Context, 'random' | 'digest'>,
): { secret: string; digest: string } {
  const secret = newSecret(prefix, random);
  return { secret, digest: digest(secret) };
}

/** Makes a short identifier for something that was not given one. */
export function newIdentifier(random: Random): string {
  return hexadecimal(random.bytes(6));
}

function hexadecimal(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
