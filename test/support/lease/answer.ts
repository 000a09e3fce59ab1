import { createHash } from 'node:crypto';
import type { LeaseErrorCode } from '../../../src/client/error.ts';
import { hashOf, signDraft, type Draft, type TestKey } from './documents.ts';

/* The parts of an answer of a holder, and how to change them. */

export type Members = Readonly<Record<string, unknown>>;
export type State = 'disabled' | 'ended' | 'blocked' | 'replaced';

/** What `GET /agent/v1/lease` answers. */
export interface LeaseAnswer {
  readonly lease?: string;
  readonly notice?: string;
  readonly keys: string;
  readonly proof?: string;
}

/** What a program must conclude: valid, refused, or why the answer is not to be believed. */
export type Expected = 'valid' | State | LeaseErrorCode;

export const issuer = 'https://licenses.example.com';
export const product = 'RGsF';
export const day = 86_400;
export const keysVersion = 3;

/** The parts of one answer, which a vector changes. */
export interface Parts {
  readonly statement: Draft;
  readonly lease: Draft;
  readonly notice: Draft;
  readonly device: TestKey;
  readonly nonce: string;
}

export interface Keys {
  readonly root: TestKey;
  readonly otherRoot: TestKey;
  readonly signing: TestKey;
  /** A signing key that ends before the leases. */
  readonly ending: TestKey;
  readonly device: TestKey;
  readonly stranger: TestKey;
}

export function partsOf(
  { root, signing, ending, device }: Keys,
  { licenseKey, nonce, now }: { licenseKey: string; nonce: string; now: number },
): Parts {
  const issued = { iss: issuer, issued_at: now, rev: now * 1000 };
  return {
    nonce,
    device,
    statement: {
      header: headerOf('latchkey-keys+jwt', root),
      claims: {
        iss: issuer,
        version: keysVersion,
        keys: [
          { jwk: signing.jwk, not_after: now + 400 * day },
          { jwk: ending.jwk, not_after: now + day },
        ],
      },
      key: root,
    },
    lease: {
      header: headerOf('latchkey-lease+jwt', signing),
      claims: {
        iss: issuer,
        aud: product,
        sub: 'activation-1',
        exp: now + 30 * day,
        issued_at: now,
        refresh_at: now + day,
        rev: now * 1000,
        license: {
          license_key: licenseKey,
          enabled: true,
          product_link: product,
          buyer_email: '',
          uses: 2,
          date: '2026-02-22T10:00:00Z',
        },
        seats: { limit: 3, taken: 1 },
        cnf: { jkt: device.kid },
        request: requestDigest,
      },
      key: signing,
    },
    notice: {
      header: headerOf('latchkey-notice+jwt', signing),
      claims: {
        iss: issued.iss,
        sub: 'activation-1',
        license_key: licenseKey,
        state: 'disabled',
        rev: issued.rev,
        issued_at: issued.issued_at,
        cnf: { jkt: device.kid },
        request: requestDigest,
      },
      key: signing,
    },
  };
}

/** The digest of the request that is answered. Programs do not know the request. */
const requestDigest = createHash('sha256').update('request').digest('base64url');

export function headerOf(typ: string, { kid }: TestKey): Members {
  return { alg: 'ES256', typ, kid };
}

export interface Case {
  readonly name: string;
  readonly expected: Expected;
  readonly isForStrictParsers?: true;
  readonly typed?: (licenseKey: string) => string;
  readonly answer: (parts: Parts) => LeaseAnswer;
}

/** Changes of the parts of an answer with a lease. */
export interface Changes {
  readonly statement?: Draft;
  readonly lease?: Draft;
  readonly nonce?: string;
  readonly device?: TestKey;
  readonly proof?: (draft: Draft) => Draft;
}

/** An answer with a lease and its proof, with changes that the signers themselves have signed. */
export function answerWith(
  parts: Parts,
  { proof: change, ...changes }: Changes = {},
): Required<Omit<LeaseAnswer, 'notice'>> {
  const { statement, lease, device, nonce } = { ...parts, ...changes };
  const signedLease = signDraft(lease);
  const draft = {
    header: { alg: 'ES256', typ: 'latchkey-proof+jwt', jwk: device.jwk },
    claims: { aud: product, nonce, lease_hash: hashOf(signedLease) },
    key: device,
  };
  return {
    lease: signedLease,
    proof: signDraft(change?.(draft) ?? draft),
    keys: signDraft(statement),
  };
}

export function noticeWith(parts: Parts, notice: Draft = parts.notice): LeaseAnswer {
  return { notice: signDraft(notice), keys: signDraft(parts.statement) };
}

export const withClaims = (draft: Draft, claims: Members): Draft => ({
  ...draft,
  claims: { ...draft.claims, ...claims },
});
export const withHeader = (draft: Draft, header: Members): Draft => ({
  ...draft,
  header: { ...draft.header, ...header },
});
export const signedBy = (draft: Draft, key: TestKey): Draft => ({
  ...withHeader(draft, { kid: key.kid }),
  key,
});
