import { createPublicKey } from 'node:crypto';
import { z } from 'zod';
import { formatReason } from '../../../config/errors.ts';

/** The public part of a P-256 key (RFC 7517). */
export type PublicKey = { kty: 'EC'; crv: 'P-256'; x: string; y: string };

type RootKeyResult =
  { readonly ok: true; readonly key: PublicKey } | { readonly ok: false; readonly text: string };

const coordinate = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/** Members about the use of the key, such as `kid` and `alg`, are ignored. */
const publicKey = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: coordinate,
  y: coordinate,
});

/** Reads the public root key of a vendor from a file (JWK). */
export function readRootKey(path: string, readFile: (path: string) => string): RootKeyResult {
  let content: unknown;
  try {
    content = JSON.parse(readFile(path).replace(/^\u{FEFF}/u, ''));
  } catch (error) {
    if (error instanceof SyntaxError) return unusable(`${path} is not JSON: a public key (JWK) is needed`);
    return unusable(`cannot read ${path}: ${formatReason(error)}`);
  }
  if (typeof content === 'object' && content !== null && 'd' in content) {
    return unusable(
      `${path} contains a private key: name the file with the public part (.pub.jwk), and move this file to a safe place`,
    );
  }
  const parsed = publicKey.safeParse(content);
  if (!parsed.success || !isOnCurve(parsed.data))
    return unusable(`${path} is not the public part of a P-256 key (JWK)`);
  return { ok: true, key: parsed.data };
}

function isOnCurve(key: PublicKey): boolean {
  try {
    createPublicKey({ key, format: 'jwk' });
    return true;
  } catch {
    return false;
  }
}

function unusable(text: string): RootKeyResult {
  return { ok: false, text };
}
