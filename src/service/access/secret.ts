import type { Context, Random } from '../ports.ts';

/** An authority takes no shorter secret: it could be guessed. An agent takes what its upstream issued. */
export const shortestSecret = 16;

/** Shows people, and secret scanners, what kind of secret it is. */
export type SecretPrefix = 'lk_api' | 'lk_prod' | 'lk_tok' | 'lk_log';

/** Makes a secret of 256 bits. */
export function newSecret(prefix: SecretPrefix, random: Random): string {
  return `${prefix}_${hexadecimal(random.bytes(32))}`;
}

/** Makes a secret, which is shown once, and its digest, which is stored. */
export function newCredential(
  prefix: SecretPrefix,
  { random, digest }: Pick<Context, 'random' | 'digest'>,
): { secret: string; digest: string } {
  const secret = newSecret(prefix, random);
  return { secret, digest: digest(secret) };
}

/** Makes a short identifier where the caller named none. */
export function newIdentifier(random: Random): string {
  return hexadecimal(random.bytes(6));
}

function hexadecimal(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
