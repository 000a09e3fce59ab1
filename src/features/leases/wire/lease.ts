import { z } from 'zod';
import {
  maxDeviceNameLength,
  type KnownSequence,
  type Lease,
  type LeaseRequest,
  type Notice,
} from '../domain/lease.ts';
import { maxLicenseKeyBytes, type License } from '../../../domain/license.ts';
import { formatDatetime } from '../../../domain/time.ts';
import { instant } from '../../../wire/parameters.ts';

/*
 * The signed documents of leases: JWS in compact form (RFC 7515), always ES256. Claims are exactly these members; a document
 * with others is refused. Times are seconds since 1970.
 */

/** `typ` in the header of each document. */
export const documentTypes = {
  keys: 'latchkey-keys+jwt',
  lease: 'latchkey-lease+jwt',
  notice: 'latchkey-notice+jwt',
  sequence: 'latchkey-sequence+jwt',
  request: 'latchkey-request+jwt',
  proof: 'latchkey-proof+jwt',
} as const;

export type DocumentType = keyof typeof documentTypes;

/** The largest document, in bytes. */
export const maxDocumentBytes: number = 8 * 1024;

const seconds = z.int().min(0);
/** 32 bytes in base64url. The last character has two unused bits, which must be 0, so that each value has one spelling. */
const bytes32 = z.string().regex(/^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/, 'must be 32 bytes in base64url');
const thumbprint = bytes32;

/** The public part of a P-256 key, with exactly these members. */
export const publicJwk = z.strictObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: bytes32,
  y: bytes32,
});

export type PublicJwk = z.infer<typeof publicJwk>;

/** A private P-256 key in a file. Other programs add members such as `kid` or `alg`, which do not matter. */
export const privateJwk = z.object({ ...publicJwk.shape, d: bytes32 });

export type PrivateJwk = z.infer<typeof privateJwk>;

/** The header of a document that a root or a signing key has signed. */
export const keyHeader = z.strictObject({ alg: z.literal('ES256'), typ: z.string(), kid: thumbprint });

/** The header of a document that a device has signed. */
export const deviceHeader = z.strictObject({ alg: z.literal('ES256'), typ: z.string(), jwk: publicJwk });

const issuer = z.string().min(1).max(500);
/** Base64url of at least 12 bytes, or a UUID. */
export const nonceText = z
  .string()
  .regex(/^[A-Za-z0-9_-]{16,128}$/, 'malformed: must be 16 to 128 letters, digits, - and _');
const nonce = nonceText;
const activationId = z.string().min(1).max(100);
const device = z.strictObject({ jkt: thumbprint });
/** SHA-256 of the signed part of the request that the document answers. */
const answeredRequest = bytes32;

export const maxKeysOfStatement = 20;

export const statementClaims = z.strictObject({
  iss: issuer,
  version: z.int().min(1),
  keys: z.array(z.strictObject({ jwk: publicJwk, not_after: seconds })).max(maxKeysOfStatement),
});

export type StatementClaims = z.infer<typeof statementClaims>;

/** The signing keys of an issuer. A root key signs a statement with a higher version to replace it. */
export type KeyStatement = {
  issuer: string;
  version: number;
  /** `notAfter` (epoch ms): no lease that the key signs expires later. */
  keys: readonly { jwk: PublicJwk; notAfter: number }[];
};

/** The license in a lease. The list is its own: a member that the API gains is not signed into leases by itself. */
const leasedLicense = z.strictObject({
  license_key: z.string(),
  enabled: z.boolean(),
  product_link: z.string(),
  buyer_email: z.string(),
  uses: z.int(),
  date: instant,
  expires_at: instant.optional(),
  uses_limit: z.int().optional(),
  entitlements: z.array(z.string()).optional(),
});

export const leaseClaims = z.strictObject({
  iss: issuer,
  aud: z.string().min(1),
  sub: activationId,
  exp: seconds,
  issued_at: seconds,
  refresh_at: seconds,
  rev: z.int().min(1),
  license: leasedLicense,
  seats: z.strictObject({ limit: z.int().min(1), taken: z.int().min(0) }).nullable(),
  cnf: device,
  request: answeredRequest,
  nonce: nonce.optional(),
});

export type LeaseClaims = z.infer<typeof leaseClaims>;

export const noticeClaims = z.strictObject({
  iss: issuer,
  sub: activationId,
  license_key: z.string(),
  state: z.enum(['disabled', 'ended', 'blocked', 'replaced']),
  rev: z.int().min(1),
  issued_at: seconds,
  expired_at: seconds.optional(),
  cnf: device,
  request: answeredRequest,
});

export type NoticeClaims = z.infer<typeof noticeClaims>;

const total = z.int().min(0);

/** The answer `out_of_sequence`: what the issuer knows of the requests of the device. */
export const sequenceClaims = z.strictObject({
  iss: issuer,
  last: total,
  challenge: z.string().min(1).max(100),
  uses: z.strictObject({ recorded: total, returned: total }),
  restored: z.boolean(),
  issued_at: seconds,
  request: answeredRequest,
});

export type SequenceClaims = z.infer<typeof sequenceClaims>;

export const requestClaims = z.strictObject({
  aud: issuer,
  /** Random. Without it, two copies of a device could sign the same request, and each would get the answer of the other. */
  jti: nonce,
  act: z.enum(['take', 'renew', 'end']),
  product_key: z.string().min(1).max(200),
  license_key: z.string().min(1).max(maxLicenseKeyBytes),
  seq: z.int().min(1),
  challenge: z.string().max(100).optional(),
  activation_id: activationId.optional(),
  nonce: nonce.optional(),
  device_name: z.string().max(maxDeviceNameLength).optional(),
  replaces: activationId.optional(),
  uses: z.strictObject({ recorded: total, returned: total }),
});

export type RequestClaims = z.infer<typeof requestClaims>;

export const proofClaims = z.strictObject({ aud: z.string().min(1), nonce, lease_hash: bytes32 });

export type ProofClaims = z.infer<typeof proofClaims>;

/** A device has its key. `leaseHash`: SHA-256 of the signed part of its lease, in base64url. */
export type Proof = { productKey: string; nonce: string; leaseHash: string };

/** The claims of each type of document, with their members in this order. */
export const documentClaims = {
  keys: statementClaims,
  lease: leaseClaims,
  notice: noticeClaims,
  sequence: sequenceClaims,
  request: requestClaims,
  proof: proofClaims,
} as const;

export type DocumentClaims = { [Type in DocumentType]: z.infer<(typeof documentClaims)[Type]> };

export function serializeStatement({ issuer: iss, version, keys }: KeyStatement): StatementClaims {
  return { iss, version, keys: keys.map(({ jwk, notAfter }) => ({ jwk, not_after: secondsOf(notAfter) })) };
}

export function parseStatementClaims({ iss, version, keys }: StatementClaims): KeyStatement {
  return {
    issuer: iss,
    version,
    keys: keys.map(({ jwk, not_after: notAfter }) => ({ jwk, notAfter: notAfter * 1000 })),
  };
}

/** `digest`: of the request that is answered (`SignedRequest`). */
export function serializeLease(lease: Lease, iss: string, digest: string): LeaseClaims {
  return {
    iss,
    aud: lease.productKey,
    sub: lease.activationId,
    exp: secondsOf(lease.expiresAt),
    issued_at: secondsOf(lease.issuedAt),
    refresh_at: secondsOf(lease.refreshAt),
    rev: lease.rev,
    license: serializeLeasedLicense(lease.license),
    seats: lease.seats === null ? null : { limit: lease.seats.limit, taken: lease.seats.taken },
    cnf: { jkt: lease.device },
    request: base64urlOf(digest),
    ...(lease.nonce !== null && { nonce: lease.nonce }),
  };
}

function serializeLeasedLicense(license: License): LeaseClaims['license'] {
  return {
    license_key: license.licenseKey,
    enabled: license.enabled,
    product_link: license.productKey,
    buyer_email: license.buyerEmail,
    uses: license.uses,
    date: formatDatetime(license.createdAt),
    ...serializeTerms(license),
  };
}

function serializeTerms({
  expiresAt,
  usesLimit,
  terms,
}: License): Pick<LeaseClaims['license'], 'expires_at' | 'uses_limit' | 'entitlements'> {
  return {
    ...(typeof expiresAt === 'number' && { expires_at: formatDatetime(expiresAt) }),
    ...(typeof usesLimit === 'number' && { uses_limit: usesLimit }),
    ...(terms?.entitlements !== undefined && { entitlements: [...terms.entitlements] }),
  };
}

export function serializeNotice(notice: Notice, iss: string, digest: string): NoticeClaims {
  return {
    iss,
    sub: notice.activationId,
    license_key: notice.licenseKey,
    state: notice.state,
    rev: notice.rev,
    issued_at: secondsOf(notice.issuedAt),
    ...(notice.expiredAt !== undefined && { expired_at: secondsOf(notice.expiredAt) }),
    cnf: { jkt: notice.device },
    request: base64urlOf(digest),
  };
}

export function serializeSequence(
  { last, challenge, uses: { recorded, returned }, isRestored: restored }: KnownSequence,
  iss: string,
  { digest, now }: { digest: string; now: number },
): SequenceClaims {
  return {
    iss,
    last,
    challenge,
    uses: { recorded, returned },
    restored,
    issued_at: secondsOf(now),
    request: base64urlOf(digest),
  };
}

export function parseSequenceClaims(claims: SequenceClaims): KnownSequence & { issuedAt: number } {
  const { last, challenge, uses, restored: isRestored } = claims;
  return { last, challenge, uses, isRestored, issuedAt: claims.issued_at * 1000 };
}

export function parseLeaseClaims(claims: LeaseClaims): Lease {
  const { license } = claims;
  return {
    activationId: claims.sub,
    productKey: claims.aud,
    license: {
      licenseKey: license.license_key,
      enabled: license.enabled,
      productKey: license.product_link,
      buyerEmail: license.buyer_email,
      uses: license.uses,
      createdAt: Date.parse(license.date),
      ...parseTerms(license),
    },
    expiresAt: claims.exp * 1000,
    issuedAt: claims.issued_at * 1000,
    refreshAt: claims.refresh_at * 1000,
    rev: claims.rev,
    seats: claims.seats,
    device: claims.cnf.jkt,
    nonce: claims.nonce ?? null,
  };
}

function parseTerms({
  expires_at: end,
  uses_limit: usesLimit,
  entitlements,
}: LeaseClaims['license']): Pick<License, 'expiresAt' | 'usesLimit' | 'terms'> {
  return {
    ...(end !== undefined && { expiresAt: Date.parse(end) }),
    ...(usesLimit !== undefined && { usesLimit }),
    ...(entitlements !== undefined && { terms: { entitlements } }),
  };
}

export function parseNoticeClaims(claims: NoticeClaims): Notice {
  return {
    activationId: claims.sub,
    licenseKey: claims.license_key,
    state: claims.state,
    rev: claims.rev,
    issuedAt: claims.issued_at * 1000,
    device: claims.cnf.jkt,
    ...(claims.expired_at !== undefined && { expiredAt: claims.expired_at * 1000 }),
  };
}

export function serializeProof({ productKey, nonce: value, leaseHash }: Proof): ProofClaims {
  return { aud: productKey, nonce: value, lease_hash: leaseHash };
}

export function parseProofClaims(claims: ProofClaims): Proof {
  return { productKey: claims.aud, nonce: claims.nonce, leaseHash: claims.lease_hash };
}

export function parseRequestClaims(claims: RequestClaims): LeaseRequest {
  return {
    act: claims.act,
    productKey: claims.product_key,
    licenseKey: claims.license_key,
    seq: claims.seq,
    challenge: claims.challenge ?? null,
    activationId: claims.activation_id ?? null,
    nonce: claims.nonce ?? null,
    deviceName: claims.device_name ?? null,
    replaces: claims.replaces ?? null,
    uses: claims.uses,
  };
}

/** `jti`: random, for example 16 bytes in base64url. */
export function serializeRequest(request: LeaseRequest, aud: string, jti: string): RequestClaims {
  const { act, seq, uses } = request;
  return {
    aud,
    jti,
    act,
    product_key: request.productKey,
    license_key: request.licenseKey,
    seq,
    ...(request.challenge !== null && { challenge: request.challenge }),
    ...(request.activationId !== null && { activation_id: request.activationId }),
    ...(request.nonce !== null && { nonce: request.nonce }),
    ...(request.deviceName !== null && { device_name: request.deviceName }),
    ...(request.replaces !== null && { replaces: request.replaces }),
    uses,
  };
}

function base64urlOf(hexadecimal: string): string {
  return Buffer.from(hexadecimal, 'hex').toString('base64url');
}

function secondsOf(epochMs: number): number {
  return Math.floor(epochMs / 1000);
}

/** The answer to a request: a lease or a notice, and the key statement that verifies it. */
export const signedAnswerObject = z
  .object({ lease: z.string().optional(), notice: z.string().optional(), keys: z.string() })
  .meta({ id: 'SignedAnswer', description: 'It has either a lease or a notice.' });

/** The answer to a request that came as a file. */
export const fileAnswerObject = signedAnswerObject
  .extend({ sequence: z.string().optional() })
  .meta({ id: 'FileAnswer', description: 'It has one of a lease, a notice and a sequence.' });

/** The answer to `GET /lease/v1/keys`. */
export const keysObject = z.object({ keys: z.string() }).meta({ id: 'SigningKeys' });
