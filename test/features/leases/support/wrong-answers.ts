import { createHmac } from 'node:crypto';
import type { LeaseErrorCode } from '../../../../src/client/error.ts';
import {
  answerWith,
  end,
  keysVersion,
  noticeWith,
  now,
  product,
  signedBy,
  withClaims,
  withHeader,
  type Case,
  type Keys,
  type LeaseAnswer,
  type Members,
  type Parts,
} from './answer.ts';
import { encode, hashOf, signText, type Draft } from './documents.ts';

/* Answers that are signed by somebody, and wrong. */

export function wrongCases(keys: Keys): Case[] {
  return [
    ...wrongLeases(keys),
    ...uselessLeases(),
    ...wrongHeaders(keys),
    ...wrongProofs(keys),
    ...wrongStatements(keys),
  ];
}

function wrongLeases({ root, ending, device, stranger }: Keys): Case[] {
  const cases: [string, LeaseErrorCode, (lease: Draft, parts: Parts) => Draft][] = [
    ['a lease that has expired', 'expired', (lease) => withClaims(lease, { exp: now - 60 })],
    ['a lease without an end', 'malformed', (lease) => withClaims(lease, { exp: undefined })],
    ['a lease for another product', 'wrong_product', (lease) => withClaims(lease, { aud: 'other' })],
    ['a lease for a list of products', 'wrong_product', (lease) => withClaims(lease, { aud: [product] })],
    [
      'a lease of another issuer',
      'wrong_issuer',
      (lease) => withClaims(lease, { iss: 'https://other.example.com' }),
    ],
    [
      'a lease for another license key',
      'wrong_license',
      (lease) =>
        withClaims(lease, { license: { ...(lease.claims['license'] as object), license_key: 'ANOTHER' } }),
    ],
    [
      'a lease for a disabled license',
      'malformed',
      (lease) => withClaims(lease, { license: { ...(lease.claims['license'] as object), enabled: false } }),
    ],
    ['a lease without a license', 'malformed', (lease) => withClaims(lease, { license: null })],
    [
      'a lease for another device',
      'wrong_device',
      (lease) => withClaims(lease, { cnf: { jkt: stranger.kid } }),
    ],
    ['a lease that names no device', 'malformed', (lease) => withClaims(lease, { cnf: {} })],
    ['a lease that outlives its key', 'outlives_key', (lease) => signedBy(lease, ending)],
    ['a lease that a root key has signed', 'unknown_key', (lease) => signedBy(lease, root)],
    ['a lease that the device has signed', 'unknown_key', (lease) => signedBy(lease, device)],
    ['a lease that a stranger has signed', 'unknown_key', (lease) => signedBy(lease, stranger)],
    [
      'a lease that a stranger has signed by another name',
      'bad_signature',
      (lease) => ({ ...lease, key: stranger }),
    ],
    [
      'a lease that names another signing key',
      'bad_signature',
      (lease) => withHeader(lease, { kid: ending.kid }),
    ],
    ['a notice in place of a lease', 'wrong_type', (_, { notice }) => notice],
    ['a key statement in place of a lease', 'wrong_type', (_, { statement }) => statement],
    [
      'a request in place of a lease',
      'wrong_type',
      (lease) => ({
        header: { alg: 'ES256', typ: 'latchkey-request+jwt', jwk: device.jwk },
        claims: lease.claims,
        key: device,
      }),
    ],
  ];
  return cases.map(([name, expected, change]) => ({
    name,
    expected,
    answer: (parts) => answerWith(parts, { lease: change(parts.lease, parts) }),
  }));
}

/** The issuer never signs such leases. Several libraries read a text of digits as a number, and programs ignore claims that they do not need. */
function uselessLeases(): Case[] {
  const claims: [string, Members][] = [
    ['an end that is a text', { exp: String(end) }],
    ['no activation', { sub: null }],
    ['seats that are a text', { seats: 'many' }],
    ['no date of the next renewal', { refresh_at: undefined }],
  ];
  return claims.map(([name, changed]) => ({
    name: `a lease with ${name}`,
    expected: 'malformed',
    isForStrictParsers: true,
    answer: (parts) => answerWith(parts, { lease: withClaims(parts.lease, changed) }),
  }));
}

/** Notices that the issuer has signed and that end no lease of this device. */
export function wrongNotices({ signing, ending, stranger }: Keys): Case[] {
  const notices: [string, LeaseErrorCode, (notice: Draft) => Draft][] = [
    [
      'a notice about another device',
      'wrong_device',
      (notice) => withClaims(notice, { cnf: { jkt: stranger.kid } }),
    ],
    ['a notice that names no device', 'malformed', (notice) => withClaims(notice, { cnf: undefined })],
    [
      'a notice that has the license key in the member of a lease',
      'wrong_license',
      (notice) =>
        withClaims(notice, {
          license_key: undefined,
          license: { license_key: notice.claims['license_key'], enabled: false },
        }),
    ],
    [
      'a notice that was issued after the end of its key',
      'outlives_key',
      (notice) => signedBy(notice, ending),
    ],
    ['a notice without a date', 'malformed', (notice) => withClaims(notice, { issued_at: undefined })],
    ['a notice whose header has a jwk', 'malformed', (notice) => withHeader(notice, { jwk: signing.jwk })],
    [
      'a notice of the type of a lease',
      'wrong_type',
      (notice) => withHeader(notice, { typ: 'latchkey-lease+jwt' }),
    ],
  ];
  const cases = notices.map(([name, expected, change]): Case => ({
    name,
    expected,
    answer: (parts) => noticeWith(parts, { notice: change(parts.notice) }),
  }));
  return [
    ...cases,
    {
      name: 'a notice about another device, with the proof of that device for another nonce',
      expected: 'wrong_nonce',
      answer: (parts) =>
        noticeWith(parts, {
          notice: withClaims(parts.notice, { cnf: { jkt: stranger.kid } }),
          device: stranger,
          nonce: 'recorded-nonce-of-another-day',
        }),
    },
    {
      name: 'a notice without a proof',
      expected: 'wrong_nonce',
      answer(parts) {
        const { notice, keys } = noticeWith(parts);
        return { notice, keys };
      },
    },
    {
      name: 'a recorded notice',
      expected: 'wrong_nonce',
      answer: (parts) => noticeWith(parts, { nonce: 'recorded-nonce-of-another-day' }),
    },
    {
      name: 'a notice with the proof for a lease',
      expected: 'wrong_nonce',
      answer: (parts) => ({ ...noticeWith(parts), proof: answerWith(parts).proof }),
    },
    {
      name: 'a lease in place of a notice',
      expected: 'wrong_type',
      answer(parts) {
        const { lease, ...rest } = answerWith(parts);
        return { notice: lease, ...rest };
      },
    },
    {
      name: 'a notice and a lease',
      expected: 'malformed',
      isForStrictParsers: true,
      answer: (parts) => ({ ...answerWith(parts), notice: noticeWith(parts).notice }),
    },
  ];
}

function wrongHeaders({ signing }: Keys): Case[] {
  const headers: [string, LeaseErrorCode, Members][] = [
    ['another type', 'wrong_type', { typ: 'JWT' }],
    ['the algorithm ES384', 'malformed', { alg: 'ES384' }],
    ['a jwk', 'malformed', { jwk: signing.jwk }],
    ['a jku', 'malformed', { jku: 'https://attacker.example.com/keys' }],
    ['an x5c', 'malformed', { x5c: ['AAAA'] }],
    ['a critical member', 'malformed', { crit: ['exp'], exp: 0 }],
    ['b64', 'malformed', { b64: true }],
  ];
  return [
    ...headers.map(([name, expected, header]): Case => ({
      name: `a lease whose header has ${name}`,
      expected,
      answer: (parts) => answerWith(parts, { lease: withHeader(parts.lease, header) }),
    })),
    {
      name: 'a lease without the name of a key',
      expected: 'malformed',
      answer: (parts) =>
        answerWith(parts, { lease: { ...parts.lease, header: { alg: 'ES256', typ: 'latchkey-lease+jwt' } } }),
    },
    {
      name: 'a lease that is not signed',
      expected: 'malformed',
      answer: (parts) => unsigned(parts, { alg: 'none' }, () => Buffer.alloc(0)),
    },
    {
      name: 'a lease that is signed with the public key as a secret',
      expected: 'malformed',
      answer: (parts) =>
        unsigned(parts, { alg: 'HS256' }, (text) =>
          createHmac('sha256', JSON.stringify(signing.jwk)).update(text).digest(),
        ),
    },
    {
      name: 'a lease with the signature of 64 zeros',
      expected: 'bad_signature',
      answer: (parts) => unsigned(parts, {}, () => Buffer.alloc(64)),
    },
    ...rawCases(),
  ];
}

/** A lease with a signature that is none. */
function unsigned(parts: Parts, header: Members, sign: (text: string) => Buffer): LeaseAnswer {
  const answer = answerWith(parts);
  const draft = withHeader(parts.lease, header);
  const signed = [draft.header, draft.claims].map((part) => encode(JSON.stringify(part))).join('.');
  return { ...answer, lease: `${signed}.${encode(sign(signed))}` };
}

/** Leases that the issuer has signed, but whose text parsers may read in more than one way. */
function rawCases(): Case[] {
  const raw: [string, (header: string, claims: string) => [string, string]][] = [
    ['duplicate members in its claims', (header, claims) => [header, claims.replace('{', '{"aud":"other",')]],
    ['duplicate members in its header', (header, claims) => [header.replace('{', '{"kid":"other",'), claims]],
    ['white space', (header, claims) => [header, claims.replace('{', '{ ')]],
    ['a byte order mark', (header, claims) => [header, `\ufeff${claims}`]],
  ];
  return raw.map(([name, change]) => ({
    name: `a lease with ${name}`,
    expected: 'malformed',
    isForStrictParsers: true,
    answer({ lease, ...parts }) {
      const [header, claims] = change(JSON.stringify(lease.header), JSON.stringify(lease.claims));
      const text = signText(header, claims, lease.key);
      const proof = (draft: Draft): Draft => withClaims(draft, { lease_hash: hashOf(text) });
      return { ...answerWith({ lease, ...parts }, { proof }), lease: text };
    },
  }));
}

function wrongProofs({ device, stranger }: Keys): Case[] {
  const proofs: [string, LeaseErrorCode, (proof: Draft) => Draft][] = [
    ['for another nonce', 'wrong_nonce', (proof) => withClaims(proof, { nonce: 'AAAAAAAAAAAAAAAAAAAAAA' })],
    ['for another lease', 'wrong_nonce', (proof) => withClaims(proof, { lease_hash: hashOf('a.b.c') })],
    ['for another product', 'wrong_product', (proof) => withClaims(proof, { aud: 'other' })],
    [
      'of another device',
      'wrong_device',
      (proof) => ({ ...withHeader(proof, { jwk: stranger.jwk }), key: stranger }),
    ],
    ['that another device has signed', 'bad_signature', (proof) => ({ ...proof, key: stranger })],
    ['whose header has a critical member', 'malformed', (proof) => withHeader(proof, { crit: ['exp'] })],
    [
      'whose key has further members',
      'malformed',
      (proof) => withHeader(proof, { jwk: { ...device.jwk, use: 'sig' } }),
    ],
    ['of another type', 'wrong_type', (proof) => withHeader(proof, { typ: 'latchkey-request+jwt' })],
  ];
  return [
    ...proofs.map(([name, expected, proof]): Case => ({
      name: `a proof ${name}`,
      expected,
      answer: (parts) => answerWith(parts, { proof }),
    })),
    {
      name: 'a lease without a proof',
      expected: 'wrong_nonce',
      answer(parts) {
        const { lease, keys } = answerWith(parts);
        return { lease, keys };
      },
    },
    {
      name: 'a recorded answer',
      expected: 'wrong_nonce',
      answer: (parts) => answerWith({ ...parts, nonce: 'recorded-nonce-of-another-day' }),
    },
    {
      name: 'a lease in place of its proof',
      expected: 'wrong_type',
      answer(parts) {
        const answer = answerWith(parts);
        return { ...answer, proof: answer.lease };
      },
    },
  ];
}

function wrongStatements({ root, signing, device, stranger }: Keys): Case[] {
  const statements: [string, LeaseErrorCode, (statement: Draft) => Draft][] = [
    ['that a signing key has signed', 'unknown_key', (statement) => signedBy(statement, signing)],
    ['that a stranger has signed', 'unknown_key', (statement) => signedBy(statement, stranger)],
    [
      'that a stranger has signed by another name',
      'bad_signature',
      (statement) => ({ ...statement, key: stranger }),
    ],
    [
      'of another issuer',
      'wrong_issuer',
      (statement) => withClaims(statement, { iss: 'https://other.example.com' }),
    ],
    ['with a lower version', 'old_keys', (statement) => withClaims(statement, { version: keysVersion - 1 })],
    ['without a version', 'malformed', (statement) => withClaims(statement, { version: null })],
    ['without a list of keys', 'malformed', (statement) => withClaims(statement, { keys: null })],
    [
      'with something else in place of a key',
      'malformed',
      (statement) => withClaims(statement, { keys: [{}] }),
    ],
    ['without the signing key', 'unknown_key', (statement) => withClaims(statement, { keys: [] })],
    ['of another type', 'wrong_type', (statement) => withHeader(statement, { typ: 'latchkey-lease+jwt' })],
    ['whose header has its own key', 'malformed', (statement) => withHeader(statement, { jwk: root.jwk })],
  ];
  return [
    ...statements.map(([name, expected, statement]): Case => ({
      name: `a key statement ${name}`,
      expected,
      answer: (parts) => answerWith(parts, { statement: statement(parts.statement) }),
    })),
    {
      name: 'a key statement of a stranger that lists its key, and a lease of that key',
      expected: 'unknown_key',
      answer: (parts) =>
        answerWith(parts, {
          statement: signedBy(
            withClaims(parts.statement, { keys: [{ jwk: device.jwk, not_after: 9_999_999_999 }] }),
            stranger,
          ),
          lease: signedBy(parts.lease, device),
        }),
    },
    {
      name: 'a lease in place of the key statement',
      expected: 'wrong_type',
      answer(parts) {
        const answer = answerWith(parts);
        return { ...answer, keys: answer.lease };
      },
    },
  ];
}
