import type { LeaseErrorCode } from '../../../../src/client/error.ts';
import { hashOf, sha256, signDraft, type Draft, type TestKey } from './documents.ts';

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

/**
 * What a program must conclude: valid, refused, or why the answer is not to be believed. `license_expired`: refused, because
 * the license has ended.
 */
export type Expected = 'valid' | State | 'license_expired' | LeaseErrorCode;

export const issuer = 'https://licenses.example.com';
export const product = 'RGsF';
export const day = 86_400;
export const keysVersion = 3;
/** When the documents are issued, in seconds. The programs ask the clock of their machine, which is later. */
export const now = Date.parse('2026-03-01T12:00:00Z') / 1000;
/** When the leases end. */
export const end = Date.parse('2100-01-01T00:00:00Z') / 1000;

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
  /** A signing key that has ended before the documents were issued. */
  readonly ending: TestKey;
  readonly device: TestKey;
  readonly stranger: TestKey;
}

export function partsOf(
  { root, signing, ending, device }: Keys,
  { licenseKey, nonce }: { licenseKey: string; nonce: string },
): Parts {
  // The request that the document answers: only the holder looks at it.
  const request = sha256(`a request for ${licenseKey}`);
  return {
    nonce,
    device,
    statement: {
      header: headerOf('latchkey-keys+jwt', root),
      claims: {
        iss: issuer,
        version: keysVersion,
        keys: [
          { jwk: signing.jwk, not_after: end + day },
          { jwk: ending.jwk, not_after: now - day },
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
        exp: end,
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
        request,
      },
      key: signing,
    },
    notice: {
      header: headerOf('latchkey-notice+jwt', signing),
      claims: {
        iss: issuer,
        sub: 'activation-1',
        license_key: licenseKey,
        state: 'disabled',
        rev: now * 1000,
        issued_at: now,
        cnf: { jkt: device.kid },
        request,
      },
      key: signing,
    },
  };
}

export function headerOf(typ: string, { kid }: TestKey): Members {
  return { alg: 'ES256', typ, kid };
}

export interface Case {
  readonly name: string;
  readonly expected: Expected;
  readonly isForStrictParsers?: true;
  readonly isTampered?: true;
  readonly entitlements?: readonly string[];
  readonly typed?: (licenseKey: string) => string;
  readonly answer: (parts: Parts) => LeaseAnswer;
}

/** Changes of the parts of an answer. */
export interface Changes {
  readonly statement?: Draft;
  readonly lease?: Draft;
  readonly notice?: Draft;
  readonly nonce?: string;
  readonly device?: TestKey;
  readonly proof?: (draft: Draft) => Draft;
}

/** An answer with a lease and its proof, with changes that the signers themselves have signed. */
export function answerWith(parts: Parts, changes: Changes = {}): Required<Omit<LeaseAnswer, 'notice'>> {
  const changed = { ...parts, ...changes };
  const lease = signDraft(changed.lease);
  return { lease, proof: proofOf(lease, changed), keys: signDraft(changed.statement) };
}

/** An answer with a notice and its proof. */
export function noticeWith(parts: Parts, changes: Changes = {}): Required<Omit<LeaseAnswer, 'lease'>> {
  const changed = { ...parts, ...changes };
  const notice = signDraft(changed.notice);
  return { notice, proof: proofOf(notice, changed), keys: signDraft(changed.statement) };
}

function proofOf(
  document: string,
  { device, nonce, proof }: Pick<Parts, 'device' | 'nonce'> & Pick<Changes, 'proof'>,
): string {
  const draft = {
    header: { alg: 'ES256', typ: 'latchkey-proof+jwt', jwk: device.jwk },
    claims: { aud: product, nonce, lease_hash: hashOf(document) },
    key: device,
  };
  return signDraft(proof?.(draft) ?? draft);
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
