import { createHash, generateKeyPairSync, sign as signBytes, type KeyObject } from 'node:crypto';

/*
 * Signs the documents of leases as freely as an attacker can: with any header, any key and any text. The issuer and the
 * device of the product sign with `src/lease/documents.ts`.
 */

type Members = Readonly<Record<string, unknown>>;

/** A public P-256 key (JWK). */
export interface Jwk {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly y: string;
}

export interface TestKey {
  readonly kid: string;
  readonly jwk: Jwk;
  readonly privateKey: KeyObject;
}

export function newTestKey(): TestKey {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const jwk = { kty: 'EC', crv: 'P-256', x, y };
  const kid = sha256(JSON.stringify({ crv: jwk.crv, kty: jwk.kty, x, y }));
  return { kid, jwk, privateKey };
}

/** One document before it is signed. */
export interface Draft {
  readonly header: Members;
  readonly claims: Members;
  readonly key: TestKey;
}

/** Signs a document. */
export function signDraft({ header, claims, key }: Draft): string {
  return signText(JSON.stringify(header), JSON.stringify(claims), key);
}

/** Signs a document whose parts are any text. */
export function signText(header: string, claims: string, key: TestKey): string {
  const signed = `${encode(header)}.${encode(claims)}`;
  const signature = signBytes('sha256', Buffer.from(signed), {
    key: key.privateKey,
    dsaEncoding: 'ieee-p1363',
  });
  return `${signed}.${encode(signature)}`;
}

/** `lease_hash`: covers the header and the payload. */
export function hashOf(document: string): string {
  return sha256(document.slice(0, document.lastIndexOf('.')));
}

/** Changes the header and the claims of a signed document, and keeps its signature. */
export function tamper(
  document: string,
  part: 'header' | 'claims',
  change: (members: Members) => Members,
): string {
  const parts = document.split('.');
  const index = part === 'header' ? 0 : 1;
  const members = JSON.parse(Buffer.from(parts[index] ?? '', 'base64url').toString()) as Members;
  return parts.with(index, encode(JSON.stringify(change(members)))).join('.');
}

const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** Gives the second valid form of an ECDSA signature: with -s in place of s. */
export function withOtherSignature(document: string): string {
  const [header = '', claims = '', signature = ''] = document.split('.');
  const bytes = Buffer.from(signature, 'base64url');
  const s = order - BigInt(`0x${bytes.subarray(32).toString('hex')}`);
  const other = Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, '0'), 'hex')]);
  return `${header}.${claims}.${encode(other)}`;
}

export function encode(content: string | Buffer): string {
  return Buffer.from(content).toString('base64url');
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
