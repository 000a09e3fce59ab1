import { z } from 'zod';
import { maxDeviceNameLength, type Lease, type LeaseRequest, type Notice } from '../domain/lease.ts';
import { maxLicenseKeyLength } from '../domain/license.ts';
import { licenseObject, serializeLicense } from './license.ts';

/*
 * The signed documents of leases: JWS in compact form (RFC 7515), always ES256. Claims are exactly these members; a document
 * with others is refused. Times are seconds since 1970.
 */

/** `typ` in the header of each document. */
export const documentTypes = {
  keys: 'latchkey-keys+jwt',
  lease: 'latchkey-lease+jwt',
  notice: 'latchkey-notice+jwt',
  request: 'latchkey-request+jwt',
  proof: 'latchkey-proof+jwt',
} as const;

export type DocumentType = keyof typeof documentTypes;

/** The largest document, in bytes. */
export const maxDocumentBytes: number = 8 * 1024;

const seconds = z.int().min(0);
const base64url = (length: number) => z.string().regex(new RegExp(`^[A-Za-z0-9_-]{${length}}$`));
const thumbprint = base64url(43);

/** The public part of a P-256 key, with exactly these members. */
export const publicJwk = z.strictObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: base64url(43),
  y: base64url(43),
});

export type PublicJwk = z.infer<typeof publicJwk>;

/** The header of a document that a root or a signing key has signed. */
export const keyHeader = z.strictObject({ alg: z.literal('ES256'), typ: z.string(), kid: thumbprint });

/** The header of a document that a device has signed. */
export const deviceHeader = z.strictObject({ alg: z.literal('ES256'), typ: z.string(), jwk: publicJwk });

const issuer = z.string().min(1).max(500);
const nonce = z.string().regex(/^[A-Za-z0-9_-]{16,128}$/);
const activationId = z.string().min(1).max(100);

export const statementClaims = z.strictObject({
  iss: issuer,
  version: z.int().min(1),
  keys: z.array(z.strictObject({ jwk: publicJwk, not_after: seconds })).max(20),
});

export type StatementClaims = z.infer<typeof statementClaims>;

export const leaseClaims = z.strictObject({
  iss: issuer,
  aud: z.string().min(1),
  sub: activationId,
  exp: seconds,
  issued_at: seconds,
  refresh_at: seconds,
  rev: z.int().min(1),
  license: licenseObject,
  seats: z.strictObject({ limit: z.int().min(1), taken: z.int().min(0) }).nullable(),
  cnf: z.strictObject({ jkt: thumbprint }),
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
});

export type NoticeClaims = z.infer<typeof noticeClaims>;

const total = z.int().min(0);

export const requestClaims = z.strictObject({
  aud: issuer,
  act: z.enum(['take', 'renew', 'end']),
  product_key: z.string().min(1).max(200),
  license_key: z.string().min(1).max(maxLicenseKeyLength),
  seq: z.int().min(1),
  challenge: z.string().max(100).optional(),
  nonce: nonce.optional(),
  device_name: z.string().max(maxDeviceNameLength).optional(),
  replaces: activationId.optional(),
  uses: z.strictObject({ recorded: total, returned: total }),
});

export type RequestClaims = z.infer<typeof requestClaims>;

export const proofClaims = z.strictObject({ aud: z.string().min(1), nonce, lease_hash: z.string() });

export type ProofClaims = z.infer<typeof proofClaims>;

export function serializeLease(lease: Lease, iss: string): LeaseClaims {
  return {
    iss,
    aud: lease.productKey,
    sub: lease.activationId,
    exp: secondsOf(lease.expiresAt),
    issued_at: secondsOf(lease.issuedAt),
    refresh_at: secondsOf(lease.refreshAt),
    rev: lease.rev,
    license: serializeLicense(lease.license),
    seats: lease.seats,
    cnf: { jkt: lease.device },
    ...(lease.nonce !== null && { nonce: lease.nonce }),
  };
}

export function serializeNotice(notice: Notice, iss: string): NoticeClaims {
  return {
    iss,
    sub: notice.activationId,
    license_key: notice.licenseKey,
    state: notice.state,
    rev: notice.rev,
    issued_at: secondsOf(notice.issuedAt),
  };
}

export function parseRequestClaims(claims: RequestClaims): LeaseRequest {
  return {
    act: claims.act,
    productKey: claims.product_key,
    licenseKey: claims.license_key,
    seq: claims.seq,
    challenge: claims.challenge ?? null,
    nonce: claims.nonce ?? null,
    deviceName: claims.device_name ?? null,
    replaces: claims.replaces ?? null,
    uses: claims.uses,
  };
}

export function serializeRequest(request: LeaseRequest, aud: string): RequestClaims {
  const { act, seq, uses } = request;
  return {
    aud,
    act,
    product_key: request.productKey,
    license_key: request.licenseKey,
    seq,
    ...(request.challenge !== null && { challenge: request.challenge }),
    ...(request.nonce !== null && { nonce: request.nonce }),
    ...(request.deviceName !== null && { device_name: request.deviceName }),
    ...(request.replaces !== null && { replaces: request.replaces }),
    uses,
  };
}

function secondsOf(epochMs: number): number {
  return Math.floor(epochMs / 1000);
}
