import type { Context, Random } from '../ports.ts';

/** An authority accepts no shorter secret, because it could be guessed. An agent accepts what its upstream issued. */
export const shortestSecret = 16;

/** Lets people and secret scanners recognize the kind of secret. */
export type SecretPrefix = 'lk_api' | 'lk_prod' | 'lk_tok' | 'lk_log';

/** Makes a secret of 256 bits. */
export function newSecret(prefix: SecretPrefix, random: Random): string {
  return `${prefix}_${hexadecimal(random.bytes(32))}`;
}

/** The secret is shown once; its digest is stored. */
export function newCredential(
  prefix: SecretPrefix,
  { random, digest }: Pick<Context, 'random' | 'digest'>,
): { secret: string; digest: string } {
  const secret = newSecret(prefix, random);
  return { secret, digest: digest(secret) };
}

export function newIdentifier(random: Random): string {
  return hexadecimal(random.bytes(6));
}

function hexadecimal(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
