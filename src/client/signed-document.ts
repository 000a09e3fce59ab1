import { createHash, createPublicKey, verify as verifySignature } from 'node:crypto';
import { LeaseError, type LeaseErrorCode } from './error.ts';
import { member } from './wire.ts';

/** A public P-256 key (JWK), such as a root key of the vendor. Further members, such as `kid`, are not read. */
export interface PublicKey {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly y: string;
}

/** A JWS in compact form, decoded. Its signature is not checked yet. */
export interface SignedDocument {
  readonly name: string;
  /** Exactly one of `kid` and `jwk` is set: what the header names the key by. */
  readonly kid: string | null;
  readonly jwk: PublicKey | null;
  readonly claims: Readonly<Record<string, unknown>>;
  /** `header.payload`. */
  readonly signed: string;
  readonly signature: Buffer;
}

const maxDocumentBytes = 8 * 1024;

/** Decodes a document. Refuses every header but the exact one, and JSON that another parser may read differently. */
export function parseDocument(name: string, text: unknown, typ: string): SignedDocument {
  if (typeof text !== 'string' || text.length > maxDocumentBytes) {
    throw fault('malformed', `The ${name} must be a text of at most 8 KiB.`);
  }
  const parts = text.split('.');
  const [header = null, claims = null, signature = null] = parts.map(decodePart);
  if (parts.length !== 3 || header === null || claims === null || signature?.length !== 64) {
    throw fault('malformed', `The ${name} is not a JWS in compact form with an ES256 signature.`);
  }
  const members = parseMembers(name, header);
  if (members['typ'] !== typ) throw fault('wrong_type', `The ${name} is a document of another type.`);
  const { kid, jwk } = members;
  const isExact = members['alg'] === 'ES256' && Object.keys(members).length === 3;
  const isOfDevice = typ === 'latchkey-proof+jwt';
  if (!isExact || (isOfDevice ? !isExactKey(jwk) : typeof kid !== 'string')) {
    throw fault('malformed', `The ${name} does not have the header of its type.`);
  }
  return {
    name,
    kid: isOfDevice ? null : (kid as string),
    jwk: isOfDevice ? (jwk as PublicKey) : null,
    claims: parseMembers(name, claims),
    signed: text.slice(0, text.lastIndexOf('.')),
    signature,
  };
}

/** Decodes base64url in its only form: without padding, and without unused bits. */
function decodePart(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : null;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function parseMembers(name: string, bytes: Buffer): Readonly<Record<string, unknown>> {
  try {
    const text = utf8.decode(bytes);
    const value: unknown = JSON.parse(text);
    // A duplicate member or white space would not survive.
    if (JSON.stringify(value) !== text || typeof value !== 'object' || value === null)
      throw new Error('not strict');
    return value as Record<string, unknown>;
  } catch {
    throw fault('malformed', `The ${name} does not contain strict JSON.`);
  }
}

export function checkSignature({ name, signed, signature }: SignedDocument, jwk: PublicKey): void {
  if (!hasSigned(jwk, signed, signature))
    throw fault('bad_signature', `The signature of the ${name} is wrong.`);
}

function hasSigned({ kty, crv, x, y }: PublicKey, signed: string, signature: Buffer): boolean {
  try {
    const key = createPublicKey({ key: { kty, crv, x, y }, format: 'jwk' });
    return verifySignature('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }, signature);
  } catch {
    // The point is not on the curve.
    return false;
  }
}

/** The name of a key (RFC 7638). */
export function thumbprintOf({ kty, crv, x, y }: PublicKey): string {
  return sha256(JSON.stringify({ crv, kty, x, y }));
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

export function isPublicKey(value: unknown): value is PublicKey {
  if (member(value, 'kty') !== 'EC' || member(value, 'crv') !== 'P-256') return false;
  return ['x', 'y'].every((name) => {
    const coordinate = member(value, name);
    return typeof coordinate === 'string' && /^[\w-]{43}$/.test(coordinate);
  });
}

function isExactKey(value: unknown): value is PublicKey {
  return isPublicKey(value) && Object.keys(value).length === 4;
}

export function fault(code: LeaseErrorCode, message: string): LeaseError {
  return new LeaseError(code, message);
}

export function malformed(document: SignedDocument, claim: string): LeaseError {
  return fault('malformed', `The ${document.name} has no valid ${claim}.`);
}
