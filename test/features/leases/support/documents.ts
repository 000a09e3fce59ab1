import { createECDH, createHash, createHmac, randomBytes } from 'node:crypto';

/*
 * Signs the documents of leases as freely as an attacker can: with any header, any key and any text. The issuer and the
 * device of the product sign with `src/features/leases/documents.ts`.
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
  /** The private key: 32 bytes. */
  readonly secret: Buffer;
}

export function newTestKey(): TestKey {
  return testKey(randomBytes(32));
}

/** The same key each time. */
export function fixedTestKey(name: string): TestKey {
  return testKey(createHash('sha256').update(name).digest());
}

function testKey(secret: Buffer): TestKey {
  const point = pointOf(secret);
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'));
  const jwk = { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' };
  return { kid: sha256(JSON.stringify({ crv: jwk.crv, kty: jwk.kty, x, y })), jwk, secret };
}

/** The product of the generator of P-256 and a number: 0x04, x, y. */
function pointOf(secret: Buffer): Buffer {
  const curve = createECDH('prime256v1');
  curve.setPrivateKey(secret);
  return curve.getPublicKey();
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
  return `${signed}.${encode(signatureOf(signed, key.secret))}`;
}

/** The ES256 signature of RFC 6979, which is the same each time. Node's own signatures are random. */
function signatureOf(text: string, secret: Buffer): Buffer {
  const digest = createHash('sha256').update(text).digest();
  const [z, d] = [modulo(numberOf(digest)), numberOf(secret)];
  for (const k of noncesOf(secret, bytesOf(z))) {
    const r = modulo(numberOf(pointOf(k).subarray(1, 33)));
    const s = modulo(inverse(numberOf(k)) * (z + r * d));
    if (r !== 0n && s !== 0n) return Buffer.concat([bytesOf(r), bytesOf(s)]);
  }
  throw new Error('there is no signature');
}

/** The numbers k of RFC 6979, section 3.2. */
function* noncesOf(secret: Buffer, digest: Buffer): Generator<Buffer> {
  let [key, value] = [Buffer.alloc(32, 0), Buffer.alloc(32, 1)];
  const hmac = (...parts: Buffer[]) => createHmac('sha256', key).update(Buffer.concat(parts)).digest();
  const mix = (...parts: Buffer[]): void => {
    key = hmac(value, ...parts);
    value = hmac(value);
  };
  mix(Buffer.of(0), secret, digest);
  mix(Buffer.of(1), secret, digest);
  for (;;) {
    value = hmac(value);
    const number = numberOf(value);
    if (number > 0n && number < order) yield value;
    mix(Buffer.of(0));
  }
}

const numberOf = (bytes: Buffer): bigint => BigInt(`0x${bytes.toString('hex')}`);
const bytesOf = (number: bigint): Buffer => Buffer.from(number.toString(16).padStart(64, '0'), 'hex');
const modulo = (number: bigint): bigint => ((number % order) + order) % order;

/** The inverse modulo the order of the curve, by Fermat's little theorem. */
function inverse(number: bigint): bigint {
  let [result, base] = [1n, modulo(number)];
  for (let exponent = order - 2n; exponent > 0n; exponent >>= 1n) {
    if ((exponent & 1n) === 1n) result = modulo(result * base);
    base = modulo(base * base);
  }
  return result;
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
  const other = Buffer.concat([bytes.subarray(0, 32), bytesOf(order - numberOf(bytes.subarray(32)))]);
  return `${header}.${claims}.${encode(other)}`;
}

export function encode(content: string | Buffer): string {
  return Buffer.from(content).toString('base64url');
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
