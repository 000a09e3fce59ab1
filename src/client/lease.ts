import { types } from 'node:util';
import {
  ConfigurationError,
  type AgentUnavailableError,
  type LeaseError,
  type LeaseErrorCode,
  type ProblemCode,
  type ProblemError,
} from './error.ts';
import {
  checkSignature,
  fault,
  isPublicKey,
  malformed,
  parseDocument,
  sha256,
  thumbprintOf,
  type PublicKey,
  type SignedDocument,
} from './signed-document.ts';
import { plainText } from './license-key.ts';
import type { License, Undetermined } from './types.ts';
import { member, readLicense } from './wire.ts';

/** What a program trusts. All of this is compiled into the program: `latchkey lease setup` prints it. */
export interface LeaseTrust {
  /** The issuer of the leases, such as `https://licenses.example.com`. */
  readonly issuer: string;
  /** The product's key. */
  readonly product: string;
  /** The public root keys of the vendor. Never read them from a file or the environment: the user could replace them. */
  readonly roots: readonly PublicKey[];
  /** The highest `keysVersion` that this program has seen. A key that the vendor has retired is refused from then on. */
  readonly minKeysVersion?: number | undefined;
}

/** The answer of `GET /agent/v1/lease`, or the content of a file from `latchkey lease sign`. */
export interface LeaseDocuments {
  readonly lease?: string | null | undefined;
  /** Instead of a lease: why there is none. */
  readonly notice?: string | null | undefined;
  /** The key statement. */
  readonly keys: string;
  /** Proves that the sender has the key of the device that the lease or the notice names. */
  readonly proof?: string | null | undefined;
}

/** What to check, and against what. */
export interface LeaseCheck extends LeaseTrust, LeaseDocuments {
  /** As the user has typed it in. */
  readonly licenseKey: string;
  /** The nonce that the program has sent. Without a nonce, a recorded lease is accepted until it expires, and a recorded notice for ever. */
  readonly nonce?: string | null | undefined;
  /** The `device` of an earlier verdict, if the program has stored it: what is about another device is then refused. */
  readonly device?: string | null | undefined;
  /** The `activationId` of the lease that the program has, if it has stored it: a notice about another activation is then refused. */
  readonly activationId?: string | null | undefined;
  /** A date, or epoch ms. Default: the system clock. */
  readonly now?: Date | number | undefined;
}

/** A signed document: which one it is, and which keys have signed it. */
interface SignedAnswer {
  readonly activationId: string;
  /** The thumbprint (RFC 7638) of the key of the device. */
  readonly device: string;
  readonly issuedAt: Date;
  /** A later document of the same activation has a higher number. */
  readonly rev: number;
  /** The version of the key statement. Store it, and pass it as `minKeysVersion` the next time. */
  readonly keysVersion: number;
}

/** The license is valid on this device. */
export interface ValidLease extends SignedAnswer {
  readonly verdict: 'valid';
  /** With `license.entitlements`: what the program may unlock. */
  readonly license: License;
  /** When the lease ends, which is not later than the license. A holder renews it before. */
  readonly expiresAt: Date;
  /** When the holder renews the lease. */
  readonly refreshAt: Date;
  /** How many devices may use the license, and how many do. Null: any number. */
  readonly seats: { readonly limit: number; readonly taken: number } | null;
  /** Who has signed the nonce: the issuer just now, the device that the lease names, or neither. */
  readonly nonceSignedBy: 'issuer' | 'device' | null;
}

const noticeStates = ['disabled', 'ended', 'blocked', 'replaced'] as const;

/**
 * The issuer has signed that this device has no lease.
 *
 * - `disabled`: the license was disabled, or its purchase refunded.
 * - `expired`: the license has ended, and was not renewed.
 * - `ended`: this device has given its seat back.
 * - `replaced`: another device has taken the seat over.
 * - `blocked`: the vendor has blocked this device.
 */
export interface SignedRefusal extends SignedAnswer {
  readonly verdict: 'refused';
  readonly reason: (typeof noticeStates)[number] | 'expired';
  /** When the license ended, if it is `expired`. */
  readonly expiredAt: Date | null;
  readonly isSigned: true;
}

/** A refusal without a signature. Any program that answers on the port can make such a refusal. */
export interface UnsignedRefusal {
  readonly verdict: 'refused';
  /**
   * - `not_found`: there is no such key; at first, a typing error.
   * - `not_activated`: this device has no seat, and takes one only after `latchkey activate`.
   * - `no_seat_left`: other devices have all the seats.
   * - `no_move_left`: no more seats can be freed now.
   * - `blocked`: the vendor has blocked this device.
   * - `expired`: the license has ended, and the holder cannot ask whether it was renewed.
   */
  readonly reason: 'not_found' | 'not_activated' | 'no_seat_left' | 'no_move_left' | 'blocked' | 'expired';
  readonly isSigned: false;
  readonly error: ProblemError;
}

/**
 * Nothing is proven now. This is not a "no".
 *
 * - `not_proven`: the answer is not signed as it must be. `error` says why: another program may have answered.
 * - The other reasons are those of `Undetermined`.
 */
export interface UndeterminedLease {
  readonly verdict: 'undetermined';
  readonly reason: Undetermined['reason'] | 'not_proven';
  readonly error: AgentUnavailableError | ProblemError | LeaseError;
}

/** The answer to "is this license valid on this device?". */
export type LeaseVerdict = ValidLease | SignedRefusal | UnsignedRefusal | UndeterminedLease;

/** The refusals of a holder, and what they mean for a license key. */
export const leaseRefusals: Readonly<Partial<Record<ProblemCode, UnsignedRefusal['reason']>>> = {
  license_not_found: 'not_found',
  // An empty or an overlong text cannot be a key.
  parameters_invalid: 'not_found',
  headers_too_large: 'not_found',
  lease_not_found: 'not_activated',
  no_seat_left: 'no_seat_left',
  no_move_left: 'no_move_left',
  activation_blocked: 'blocked',
  license_expired: 'expired',
};

/** Reads the documents in a response body. Null: there are none. */
export function readDocuments(body: unknown): LeaseDocuments | null {
  const data = member(body, 'data');
  const [lease, notice, keys, proof] = ['lease', 'notice', 'keys', 'proof'].map((name) => member(data, name));
  if (typeof keys !== 'string') return null;
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  return { lease: text(lease), notice: text(notice), keys, proof: text(proof) };
}

/**
 * Checks what a holder has answered, with the root keys of the vendor alone. Throws a `LeaseError` with one reason if the
 * answer is not to be believed: that is not a "no" of the vendor. Throws a `ConfigurationError` if the program itself passes
 * something wrong, such as an invalid `Date`.
 *
 * @example
 * const said = verifyLease({ ...answer, issuer, product, roots, licenseKey, nonce });
 * if (said.verdict === 'valid') console.log(said.license.entitlements, said.expiresAt);
 */
export function verifyLease(check: LeaseCheck): ValidLease | SignedRefusal {
  const roots = checkTrust(check);
  const nowMs = checkNow(check.now);
  checkTexts(check);
  const spellings = spellingsOf(check.licenseKey);
  const statement = readStatement(check, roots);
  const { lease = null, notice = null } = check;
  if ((lease === null) === (notice === null)) {
    throw fault('malformed', 'The answer must have a lease or a notice.');
  }
  return lease === null
    ? readNotice(check, statement, spellings)
    : readLease(check, statement, { spellings, nowMs });
}

interface Statement {
  readonly version: number;
  readonly keys: readonly { readonly jwk: PublicKey; readonly notAfter: number }[];
}

function readStatement(
  { keys, issuer, minKeysVersion = 0 }: LeaseCheck,
  roots: readonly PublicKey[],
): Statement {
  const document = parseDocument('key statement', keys, 'latchkey-keys+jwt');
  const root = roots.find((jwk) => thumbprintOf(jwk) === document.kid);
  if (root === undefined) throw fault('unknown_key', 'None of the root keys has signed the key statement.');
  checkSignature(document, root);
  checkText(document, 'iss', issuer, 'wrong_issuer');
  const version = readCount(document, 'version');
  if (version < minKeysVersion) {
    throw fault(
      'old_keys',
      `The key statement has version ${version}, and version ${minKeysVersion} was seen.`,
    );
  }
  const list = document.claims['keys'];
  if (!Array.isArray(list)) throw malformed(document, 'keys');
  return { version, keys: list.map((entry) => readKey(document, entry)) };
}

function readKey(document: SignedDocument, entry: unknown): Statement['keys'][number] {
  const [jwk, notAfter] = [member(entry, 'jwk'), member(entry, 'not_after')];
  if (!isPublicKey(jwk) || !Number.isSafeInteger(notAfter)) throw malformed(document, 'keys');
  return { jwk, notAfter: notAfter as number };
}

function readLease(
  check: LeaseCheck,
  statement: Statement,
  { spellings, nowMs }: { spellings: readonly string[]; nowMs: number },
): ValidLease {
  const document = parseDocument('lease', check.lease, 'latchkey-lease+jwt');
  const expiresAt = readTime(document, 'exp');
  checkIssued(document, check, statement, expiresAt);
  checkText(document, 'aud', check.product, 'wrong_product');
  const license = readLicense(document.claims['license']);
  if (license === null || !license.enabled) throw malformed(document, 'license');
  checkLicenseKey(document, license.licenseKey, spellings);
  if (nowMs >= expiresAt.getTime()) {
    throw fault('expired', `The lease expired at ${expiresAt.toISOString()}.`);
  }
  const isInGrace = nowMs > (license.expiresAt?.getTime() ?? Infinity);
  return {
    verdict: 'valid',
    license: isInGrace ? { ...license, status: 'grace' } : license,
    ...readAnswer(document, check, statement),
    expiresAt,
    refreshAt: readTime(document, 'refresh_at'),
    seats: readSeats(document),
    nonceSignedBy: checkNonce(check, document),
  };
}

function readNotice(check: LeaseCheck, statement: Statement, spellings: readonly string[]): SignedRefusal {
  const document = parseDocument('notice', check.notice, 'latchkey-notice+jwt');
  checkIssued(document, check, statement, readTime(document, 'issued_at'));
  checkLicenseKey(document, document.claims['license_key'], spellings);
  const state = noticeStates.find((each) => each === document.claims['state']);
  if (state === undefined) throw malformed(document, 'state');
  const expiredAt = document.claims['expired_at'] === undefined ? null : readTime(document, 'expired_at');
  const answer = readAnswer(document, check, statement);
  // A notice about another activation ends no lease of this one.
  if (!isExpected(answer.activationId, check.activationId)) {
    throw fault('wrong_activation', 'The notice is about another activation of the license.');
  }
  checkNonce(check, document);
  const reason = expiredAt === null ? state : 'expired';
  return { verdict: 'refused', reason, expiredAt, isSigned: true, ...answer };
}

/** Checks that a key of the statement has signed a document, and that the document ends before the key. */
function checkIssued(document: SignedDocument, check: LeaseCheck, statement: Statement, until: Date): void {
  const key = statement.keys.find(({ jwk }) => thumbprintOf(jwk) === document.kid);
  if (key === undefined) {
    throw fault(
      'unknown_key',
      `The key statement does not have the key that has signed the ${document.name}.`,
    );
  }
  checkSignature(document, key.jwk);
  checkText(document, 'iss', check.issuer, 'wrong_issuer');
  if (until.getTime() > key.notAfter * 1000) {
    throw fault('outlives_key', `The ${document.name} is valid for longer than the key that has signed it.`);
  }
}

/** Says who has signed the nonce. Throws if the program has sent a nonce, and the nonce is not signed. */
function checkNonce(
  { nonce, proof, product }: LeaseCheck,
  { name, claims, signed }: SignedDocument,
): ValidLease['nonceSignedBy'] {
  if (nonce === undefined || nonce === null) return null;
  const isSignedByIssuer = claims['nonce'] === nonce;
  if (proof === undefined || proof === null) {
    if (isSignedByIssuer) return 'issuer';
    throw fault('wrong_nonce', 'There is no proof for the nonce: the answer may be a recorded one.');
  }
  const document = parseDocument('proof', proof, 'latchkey-proof+jwt');
  const device = document.jwk;
  if (device === null || thumbprintOf(device) !== member(claims['cnf'], 'jkt')) {
    throw fault('wrong_device', `The proof is signed by another device than the ${name} names.`);
  }
  checkSignature(document, device);
  checkText(document, 'aud', product, 'wrong_product');
  checkText(document, 'nonce', nonce, 'wrong_nonce');
  checkText(document, 'lease_hash', sha256(signed), 'wrong_nonce');
  return isSignedByIssuer ? 'issuer' : 'device';
}

function checkLicenseKey(document: SignedDocument, licenseKey: unknown, spellings: readonly string[]): void {
  if (typeof licenseKey === 'string' && spellings.includes(licenseKey)) return;
  throw fault('wrong_license', `The ${document.name} is for another license key.`);
}

function readAnswer(document: SignedDocument, check: LeaseCheck, { version }: Statement): SignedAnswer {
  const [activationId, device] = [document.claims['sub'], member(document.claims['cnf'], 'jkt')];
  if (typeof activationId !== 'string') throw malformed(document, 'sub');
  if (typeof device !== 'string') throw malformed(document, 'cnf');
  if (!isExpected(device, check.device)) {
    throw fault('wrong_device', `The ${document.name} is about another device.`);
  }
  return {
    activationId,
    device,
    issuedAt: readTime(document, 'issued_at'),
    rev: readCount(document, 'rev'),
    keysVersion: version,
  };
}

/** Whether a value is the one that the program expects, if it expects one. */
function isExpected(value: string, expected: string | null | undefined): boolean {
  return (expected ?? value) === value;
}

function readSeats(document: SignedDocument): ValidLease['seats'] {
  const { seats } = document.claims;
  if (seats === null) return null;
  const [limit, taken] = [member(seats, 'limit'), member(seats, 'taken')];
  if (typeof limit !== 'number' || typeof taken !== 'number') throw malformed(document, 'seats');
  return { limit, taken };
}

function readCount(document: SignedDocument, name: string): number {
  const value = document.claims[name];
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw malformed(document, name);
  return value;
}

/** Reads a time in seconds. */
function readTime(document: SignedDocument, name: string): Date {
  const time = new Date(readCount(document, name) * 1000);
  if (Number.isNaN(time.getTime())) throw malformed(document, name);
  return time;
}

function checkText(document: SignedDocument, name: string, expected: string, code: LeaseErrorCode): void {
  if (document.claims[name] === expected) return;
  throw fault(code, `The ${document.name} has another ${name} than this program expects.`);
}

/** Checks what the program itself passes. Returns its root keys. */
export function checkTrust(trust: LeaseTrust): readonly PublicKey[] {
  // Plain JavaScript may pass anything.
  if (typeof trust !== 'object' || (trust as unknown) === null) {
    throw new ConfigurationError('What a lease is checked against must be an object.');
  }
  const { issuer, product, roots, minKeysVersion } = trust;
  if (typeof issuer !== 'string' || issuer === '') throw new ConfigurationError('issuer must be a text.');
  if (typeof product !== 'string' || product === '') throw new ConfigurationError('product must be a text.');
  if (!Array.isArray(roots) || roots.length === 0 || !roots.every(isPublicKey)) {
    throw new ConfigurationError('roots must be a list of public P-256 keys (JWK).');
  }
  if (roots.some((root) => 'd' in root)) {
    throw new ConfigurationError('A root key contains its private part (d): keep that offline.');
  }
  if (minKeysVersion !== undefined && !(Number.isSafeInteger(minKeysVersion) && minKeysVersion >= 0)) {
    throw new ConfigurationError('minKeysVersion must be a whole number, 0 or above.');
  }
  return roots;
}

/** Checks the time that a program passes. Returns epoch ms. With NaN, every lease would be valid for ever. */
export function checkNow(now: unknown = Date.now()): number {
  const nowMs = types.isDate(now) ? now.getTime() : now;
  if (typeof nowMs === 'number' && Number.isFinite(nowMs)) return nowMs;
  throw new ConfigurationError('now must be a valid Date or a number of ms since 1970.');
}

function checkTexts(check: LeaseCheck): void {
  for (const name of ['nonce', 'device', 'activationId'] as const) {
    const value: unknown = check[name] ?? null;
    if (value === null || (typeof value === 'string' && value !== '')) continue;
    throw new ConfigurationError(`${name} must be a text that is not empty.`);
  }
  if ((check.nonce ?? null) === null && (check.proof ?? null) !== null) {
    throw new ConfigurationError('A proof needs the nonce that it was asked for.');
  }
}

const generated = /^[A-HJ-NP-Z2-9]{5}(?:-[A-HJ-NP-Z2-9]{5}){3}$/i;

/** The license keys that a text may mean to the API: as typed in, and without what text editors do to a pasted key. */
function spellingsOf(licenseKey: unknown): readonly string[] {
  if (typeof licenseKey !== 'string') throw new ConfigurationError('licenseKey must be a text.');
  return [licenseKey, plainText(licenseKey)].map((text) => {
    const trimmed = text.trim();
    return generated.test(trimmed) ? trimmed.toUpperCase() : trimmed;
  });
}
