import { createHash, createPublicKey, KeyObject, sign, verify as verifySignature } from 'node:crypto';
import { compactVerify, errors } from 'jose';
import type { z } from 'zod';
import type { KnownSequence, Lease, Notice, SignedRequest } from './domain/lease.ts';
import type { ProblemCode } from '../../domain/problem/problem-table.ts';
import { done, failWith, type Result } from '../../domain/problem/problem.ts';
import * as wire from './wire/lease.ts';
import type {
  DocumentClaims,
  DocumentType,
  KeyStatement,
  PrivateJwk,
  Proof,
  PublicJwk,
} from './wire/lease.ts';
import { parseJson } from '../../domain/text.ts';

/*
 * Signs and reads the documents of leases (features/leases/wire/lease.ts). It loads jose, and most processes have no leases:
 * import this module only when leases are used.
 */

/** A private key, ready to sign. */
export type KeyPair = {
  /** The thumbprint of the public key. */
  readonly kid: string;
  readonly jwk: PublicJwk;
  readonly key: CryptoKey;
};

const algorithm = { name: 'ECDSA', namedCurve: 'P-256' } as const;

/** Makes a private key. */
export async function newKey(): Promise<PrivateJwk> {
  const pair = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  return wire.privateJwk.parse(await crypto.subtle.exportKey('jwk', pair.privateKey));
}

/** Reads a private key (JWK). Returns null if the text is not a private P-256 key with its public part. */
export async function readPrivateKey(text: string): Promise<KeyPair | null> {
  const parsed = wire.privateJwk.safeParse(parseJson(text));
  if (!parsed.success) return null;
  try {
    // Extractable: Node warns each process that makes a `KeyObject` of another key.
    const key = await crypto.subtle.importKey('jwk', parsed.data, algorithm, true, ['sign']);
    const jwk = publicPartOf(parsed.data);
    return { kid: thumbprintOf(jwk), jwk, key };
  } catch {
    return null;
  }
}

/** Reads a public key (JWK). Returns null if the text is another key, or a private key. */
export async function readPublicKey(text: string): Promise<PublicJwk | null> {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null || 'd' in value) return null;
  const parsed = wire.publicJwk.strip().safeParse(value);
  return parsed.success && (await importPublicKey(parsed.data)) !== null ? parsed.data : null;
}

export function publicPartOf({ kty, crv, x, y }: PublicJwk): PublicJwk {
  return { kty, crv, x, y };
}

/** The thumbprint of a key (RFC 7638): SHA-256 in base64url. */
export function thumbprintOf({ crv, kty, x, y }: PublicJwk): string {
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
}

/** SHA-256 of `header.payload`. The signature is left out, because ECDSA signatures have a second valid form. */
export function signedPartDigest(document: string, encoding: 'hex' | 'base64url'): string {
  return createHash('sha256')
    .update(document.slice(0, document.lastIndexOf('.')))
    .digest(encoding);
}

/** Signs a document: a request or a proof with the key of the device, the others with a root or signing key. */
export async function signDocument<Type extends DocumentType>(
  type: Type,
  claims: DocumentClaims[Type],
  { kid, jwk, key }: KeyPair,
): Promise<string> {
  const name = isOfDevice(type) ? { jwk } : { kid };
  const header = { alg: 'ES256', typ: wire.documentTypes[type], ...name };
  const document = signNow(header, claims, key);
  if (document.length > wire.maxDocumentBytes) throw new Error(`the signed ${type} document is too large`);
  return document;
}

/** Reads a signed request for this issuer. */
export async function readRequest(text: string, issuer: string): Promise<Result<SignedRequest>> {
  return await read('lease_request_invalid', async () => {
    const { header, claims } = open(text, 'request');
    if (claims.aud !== issuer) {
      throw new DocumentFault(`The audience (aud) is ${quote(claims.aud)}, and this issuer is "${issuer}".`);
    }
    if (hasControlCharacters(claims)) throw new DocumentFault('The payload has control characters.');
    // `open` has checked that the header is exactly that of a device.
    const { jwk } = header as { jwk: PublicJwk };
    await verifyRequest(text, jwk);
    return {
      request: wire.parseRequestClaims(claims),
      device: thumbprintOf(jwk),
      digest: signedPartDigest(text, 'hex'),
    };
  });
}

/** Reads a key statement that one of these root keys has signed. */
export async function readStatement(
  text: string,
  roots: readonly PublicJwk[],
): Promise<Result<KeyStatement>> {
  return await read('lease_invalid', async () => {
    const { header, claims } = open(text, 'keys');
    const root = keyOf(header, roots);
    if (root === null) throw new DocumentFault('None of the known root keys has signed the key statement.');
    await verify(text, root);
    const statement = wire.parseStatementClaims(claims);
    const fault = await findStatementFault(statement, roots);
    if (fault !== null) throw new DocumentFault(fault);
    return statement;
  });
}

/** Why a key statement makes no sense; null: it does. */
async function findStatementFault(
  { keys }: KeyStatement,
  roots: readonly PublicJwk[],
): Promise<string | null> {
  const names = keys.map(({ jwk }) => thumbprintOf(jwk));
  if (new Set(names).size < names.length) return 'The key statement lists a key twice.';
  const rootNames = new Set(roots.map(thumbprintOf));
  if (names.some((name) => rootNames.has(name))) return 'The key statement lists a root key.';
  for (const { jwk } of keys)
    if ((await importPublicKey(jwk)) === null) return `The key statement: ${noPoint}`;
  return null;
}

/** `request`: the signed part of the answered request, as `signedPartDigest` in base64url. */
export type Answering<Content> = Content & { request: string };

/** Reads a lease that a key of this statement has signed. Does not look at the clock, the device and the product. */
export async function readLease(text: string, statement: KeyStatement): Promise<Result<Answering<Lease>>> {
  return await read('lease_invalid', async () => {
    const { header, claims } = open(text, 'lease');
    const lease = wire.parseLeaseClaims(claims);
    await verifyBy(statement, text, { header, issuer: claims.iss, until: lease.expiresAt });
    return { ...lease, request: claims.request };
  });
}

/** Reads a notice that a key of this statement has signed. Does not look at the device. */
export async function readNotice(text: string, statement: KeyStatement): Promise<Result<Answering<Notice>>> {
  return await read('lease_invalid', async () => {
    const { header, claims } = open(text, 'notice');
    const notice = wire.parseNoticeClaims(claims);
    await verifyBy(statement, text, { header, issuer: claims.iss, until: notice.issuedAt });
    return { ...notice, request: claims.request };
  });
}

/** Reads what the issuer knows of the requests of a device, signed by a key of this statement. */
export async function readSequence(
  text: string,
  statement: KeyStatement,
): Promise<Result<Answering<KnownSequence>>> {
  return await read('lease_invalid', async () => {
    const { header, claims } = open(text, 'sequence');
    const { issuedAt, ...known } = wire.parseSequenceClaims(claims);
    await verifyBy(statement, text, { header, issuer: claims.iss, until: issuedAt });
    return { ...known, request: claims.request };
  });
}

/** Reads a proof that the device with this thumbprint has signed. */
export async function readProof(text: string, device: string): Promise<Result<Proof>> {
  return await read('lease_invalid', async () => {
    const { header, claims } = open(text, 'proof');
    const { jwk } = wire.deviceHeader.parse(header);
    if (thumbprintOf(jwk) !== device) throw new DocumentFault('Another device has signed the proof.');
    await verify(text, jwk);
    return wire.parseProofClaims(claims);
  });
}

/** Why a document is refused: one sentence. */
class DocumentFault extends Error {}

async function read<Value>(code: ProblemCode, reading: () => Promise<Value>): Promise<Result<Value>> {
  try {
    return done(await reading());
  } catch (error) {
    if (!(error instanceof DocumentFault)) throw error;
    return failWith(code, error.message);
  }
}

type Parts<Type extends DocumentType> = { header: Members; claims: DocumentClaims[Type] };
type Members = Readonly<Record<string, unknown>>;

/** Decodes a document and checks everything except its signature. */
function open<Type extends DocumentType>(text: string, type: Type): Parts<Type> {
  if (Buffer.byteLength(text) > wire.maxDocumentBytes)
    throw new DocumentFault('The document is larger than 8 KiB.');
  const parts = text.split('.');
  const [first, second, signature] = parts.map(decode);
  if (parts.length !== 3 || !first || !second || !signature) {
    throw new DocumentFault(
      'The document is not a signed document: three parts in base64url with dots between them.',
    );
  }
  if (signature.length !== 64)
    throw new DocumentFault('The signature is not an ES256 signature of 64 bytes.');
  const header = parseMembers(first, 'header');
  const fault = findHeaderFault(header, type);
  if (fault !== null) throw new DocumentFault(fault);
  const parsed = wire.documentClaims[type].safeParse(parseMembers(second, 'payload'));
  if (!parsed.success) throw new DocumentFault(`The payload is not valid: ${describe(parsed.error)}.`);
  return { header, claims: parsed.data as DocumentClaims[Type] };
}

/** Returns null unless the text is base64url in its only spelling: no padding, no unused bits. */
function decode(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.length > 0 && bytes.toString('base64url') === text ? bytes : null;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads a JSON object in its only spelling, which `JSON.stringify` writes. Duplicate members and white space have no place in
 * it, so every library reads the same members.
 */
function parseMembers(bytes: Buffer, part: string): Members {
  let text: string;
  let value: unknown;
  try {
    text = utf8.decode(bytes);
    value = JSON.parse(text);
  } catch {
    throw new DocumentFault(`The ${part} is not JSON in UTF-8.`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new DocumentFault(`The ${part} is not a JSON object.`);
  }
  if (JSON.stringify(value) !== text) {
    throw new DocumentFault(
      `The ${part} has duplicate members, white space or another spelling than JSON.stringify's.`,
    );
  }
  return value as Members;
}

/** Finds control characters and halves of characters, which a database may refuse. In canonical JSON, only these have escapes. */
function hasControlCharacters(claims: unknown): boolean {
  return JSON.stringify(claims)
    .replaceAll(/\\["\\]/g, '')
    .includes('\\');
}

/** Compares before the schema does, because a sentence about each fault helps more than the first error of the schema. */
function findHeaderFault(header: Members, type: DocumentType): string | null {
  const { alg, typ } = header;
  if (typ !== wire.documentTypes[type]) {
    return `The type (typ) is ${quote(typ)}, and must be "${wire.documentTypes[type]}".`;
  }
  if (alg !== 'ES256') return `The algorithm (alg) is ${quote(alg)}, and must be "ES256".`;
  const name = isOfDevice(type) ? 'jwk' : 'kid';
  const other = Object.keys(header).find((member) => !['alg', 'typ', name].includes(member));
  if (other !== undefined) return `The header has the member ${quote(other)}, which is not allowed.`;
  if (header[name] === undefined) return `The header has no ${name}.`;
  if (name === 'jwk') return findJwkFault(header['jwk']);
  return wire.keyHeader.safeParse(header).success ? null : 'The kid is not the thumbprint of a key.';
}

function findJwkFault(jwk: unknown): string | null {
  if (typeof jwk !== 'object' || jwk === null) return 'The jwk is not an object.';
  if ('d' in jwk) return 'The jwk contains the private key (d): it may have only kty, crv, x and y.';
  const parsed = wire.publicJwk.safeParse(jwk);
  return parsed.success ? null : `The jwk is not a public P-256 key: ${describe(parsed.error)}.`;
}

function isOfDevice(type: DocumentType): boolean {
  return type === 'request' || type === 'proof';
}

function keyOf(header: Members, keys: readonly PublicJwk[]): PublicJwk | null {
  return keys.find((jwk) => thumbprintOf(jwk) === header['kid']) ?? null;
}

async function verifyBy(
  statement: KeyStatement,
  text: string,
  { header, issuer, until }: { header: Members; issuer: string; until: number },
): Promise<void> {
  if (issuer !== statement.issuer) {
    throw new DocumentFault(
      `The issuer is ${quote(issuer)}, and the issuer of the key statement is "${statement.issuer}".`,
    );
  }
  const key = statement.keys.find(({ jwk }) => thumbprintOf(jwk) === header['kid']);
  if (key === undefined)
    throw new DocumentFault('The key statement does not list the key that has signed it.');
  if (until > key.notAfter)
    throw new DocumentFault('It is valid for longer than the key that has signed it.');
  await verify(text, key.jwk);
}

const noPoint = 'The public key is not a point of the curve P-256.';

async function verify(text: string, jwk: PublicJwk): Promise<void> {
  const key = await importPublicKey(jwk);
  if (key === null) throw new DocumentFault(noPoint);
  try {
    await compactVerify(text, key, { algorithms: ['ES256'] });
  } catch (error) {
    if (error instanceof errors.JOSEError) throw new DocumentFault('The signature is wrong.');
    throw error;
  }
}

/*
 * An issuer verifies and signs once for each request. There, node:crypto takes a third of the processor time of jose, which
 * decodes the document again and uses another thread.
 */
const es256 = { dsaEncoding: 'ieee-p1363' } as const;

/** Verifies the signature of a request that `open` has read, in another thread: the server goes on with other requests. */
async function verifyRequest(text: string, jwk: PublicJwk): Promise<void> {
  let key: KeyObject;
  try {
    key = createPublicKey({ key: jwk, format: 'jwk' });
  } catch {
    throw new DocumentFault(noPoint);
  }
  const end = text.lastIndexOf('.');
  const [signed, signature] = [
    Buffer.from(text.slice(0, end)),
    Buffer.from(text.slice(end + 1), 'base64url'),
  ];
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  verifySignature('sha256', signed, { key, ...es256 }, signature, (error, isValid) => {
    if (error === null) resolve(isValid);
    else reject(error);
  });
  if (!(await promise)) throw new DocumentFault('The signature is wrong.');
}

/** The keys that sign, as node:crypto takes them. */
const keyObjects = new WeakMap<CryptoKey, KeyObject>();

function signNow(header: object, claims: object, cryptoKey: CryptoKey): string {
  const key = keyObjects.get(cryptoKey) ?? KeyObject.from(cryptoKey);
  keyObjects.set(cryptoKey, key);
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  const signed = `${encode(header)}.${encode(claims)}`;
  const signature = sign('sha256', Buffer.from(signed), { key, ...es256 });
  return `${signed}.${signature.toString('base64url')}`;
}

/** Returns null if the key is not a point of the curve. Without jose, whose own import takes twice as long. */
async function importPublicKey(jwk: PublicJwk): Promise<CryptoKey | null> {
  try {
    return await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['verify']);
  } catch {
    return null;
  }
}

/** The first fault that a schema has found, for example `uses.recorded: Invalid input`. */
function describe({ issues: [issue] }: z.ZodError): string {
  const path = issue?.path.join('.') ?? '';
  return `${path === '' ? '' : `${path}: `}${issue?.message.slice(0, 200) ?? 'unknown'}`;
}

/** Shortens what a stranger has written. */
function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? 'missing';
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
