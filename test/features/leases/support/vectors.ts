import type { LeaseErrorCode } from '../../../../src/client/error.ts';
import {
  answerWith,
  day,
  end,
  issuer,
  keysVersion,
  noticeWith,
  partsOf,
  product,
  signedBy,
  withClaims,
  type Case,
  type Expected,
  type Keys,
  type LeaseAnswer,
  type Members,
  type Parts,
  type State,
} from './answer.ts';
import { fixedTestKey, tamper, withOtherSignature, type Draft, type Jwk } from './documents.ts';
import { wrongCases, wrongNotices } from './wrong-answers.ts';

/*
 * Answers of a holder, good and bad, each with what a program must conclude. The tests of `latchkey/client` and of the
 * programs in `examples/clients` use the same answers.
 */

export interface LeaseVector {
  readonly name: string;
  /** As the user types it in. */
  readonly typed: string;
  readonly expected: Expected;
  /** Whether only a program that parses JSON strictly refuses the answer. The issuer never signs such a document. */
  readonly isForStrictParsers?: true;
  /** Whether a signed document was changed: examples/leases/vectors.json leaves these out, as there are many. */
  readonly isTampered?: true;
  /** What a valid lease unlocks; absent: nothing. */
  readonly entitlements?: readonly string[];
  readonly answer: (nonce: string) => LeaseAnswer;
}

export interface LeaseVectors {
  readonly issuer: string;
  readonly product: string;
  readonly roots: readonly Jwk[];
  readonly minKeysVersion: number;
  readonly vectors: readonly LeaseVector[];
}

/** Makes the answers: the same each time for the same vendor. */
export function makeLeaseVectors(vendor = 'latchkey'): LeaseVectors {
  const key = (name: string) => fixedTestKey(`${vendor} ${name}`);
  const keys: Keys = {
    root: key('root key'),
    otherRoot: key('other root key'),
    signing: key('signing key'),
    ending: key('ending key'),
    device: key('device'),
    stranger: key('stranger'),
  };
  const cases = [
    ...validCases(keys),
    ...noticeCases(keys),
    ...wrongNotices(keys),
    ...wrongCases(keys),
    ...tamperedCases(keys),
    // Last: the license key of a case, and with it each signature, is made from its place.
    ...termsCases(),
  ];
  return {
    issuer,
    product,
    roots: [keys.root.jwk, keys.otherRoot.jwk],
    minKeysVersion: keysVersion,
    vectors: cases.map(({ name, typed: typedKey, answer, ...rest }, index) => {
      const licenseKey = licenseKeyOf(index);
      return {
        name,
        ...rest,
        typed: typedKey?.(licenseKey) ?? licenseKey,
        answer: (nonce) => answer(partsOf(keys, { licenseKey, nonce })),
      };
    }),
  };
}

/** A key in the generated format. */
function licenseKeyOf(index: number): string {
  const letters = Array.from(String(index).padStart(5, '0'), (digit) => 'ABCDEFGHJK'.charAt(Number(digit)));
  return `WTKP4-66NL5-HMKQW-${letters.join('')}`;
}

function validCases({ otherRoot }: Keys): Case[] {
  const lease = (claims: Members) => (parts: Parts) =>
    answerWith(parts, { lease: withClaims(parts.lease, claims) });
  return [
    { name: 'a lease and its proof', expected: 'valid', answer: (parts) => answerWith(parts) },
    {
      name: 'a key statement of the second root key',
      expected: 'valid',
      answer: (parts) => answerWith(parts, { statement: signedBy(parts.statement, otherRoot) }),
    },
    {
      name: 'a newer key statement',
      expected: 'valid',
      answer: (parts) => answerWith(parts, { statement: withClaims(parts.statement, { version: 9 }) }),
    },
    {
      name: 'a lease with an older nonce, and a proof',
      expected: 'valid',
      answer: lease({ nonce: 'AAAAAAAAAAAAAAAAAAAAAA' }),
    },
    {
      name: 'a lease into which the issuer has signed the nonce, without a proof',
      expected: 'valid',
      answer(parts) {
        const { keys, lease: signed } = lease({ nonce: parts.nonce })(parts);
        return { keys, lease: signed };
      },
    },
    { name: 'a lease without a limit of seats', expected: 'valid', answer: lease({ seats: null }) },
    {
      name: 'a lease that was issued ahead of this clock',
      expected: 'valid',
      answer: lease({ issued_at: end - day }),
    },
    {
      name: 'a lease with the other valid signature',
      expected: 'valid',
      answer(parts) {
        const answer = answerWith(parts);
        return { ...answer, lease: withOtherSignature(answer.lease) };
      },
    },
    {
      name: 'a license key that was typed in small letters, with spaces',
      expected: 'valid',
      typed: (licenseKey) => `  ${licenseKey.toLowerCase()} `,
      answer: (parts) => answerWith(parts),
    },
  ];
}

function noticeCases({ stranger, device }: Keys): Case[] {
  const states: State[] = ['disabled', 'ended', 'blocked', 'replaced'];
  const changes: [string, Expected, (notice: Draft) => Draft][] = [
    ...states.map((state): [string, Expected, (notice: Draft) => Draft] => [
      `a notice with the state ${state}`,
      state,
      (notice) => withClaims(notice, { state }),
    ]),
    ['a notice with another state', 'malformed', (notice) => withClaims(notice, { state: 'active' })],
    [
      'a notice for another license key',
      'wrong_license',
      (notice) => withClaims(notice, { license_key: 'ANOTHER-KEY' }),
    ],
    [
      'a notice of another issuer',
      'wrong_issuer',
      (notice) => withClaims(notice, { iss: 'https://other.example.com' }),
    ],
    [
      'a notice that a stranger has signed by another name',
      'bad_signature',
      (notice) => ({ ...notice, key: stranger }),
    ],
    ['a notice that a stranger has signed', 'unknown_key', (notice) => signedBy(notice, stranger)],
    ['a notice that the device has signed', 'unknown_key', (notice) => signedBy(notice, device)],
  ];
  return changes.map(([name, expected, change]) => ({
    name,
    expected,
    answer: (parts) => noticeWith(parts, { notice: change(parts.notice) }),
  }));
}

/** Licenses with an end and entitlements. */
function termsCases(): Case[] {
  const entitlements = ['export', 'pro'];
  const lease = (terms: Members, claims: Members) => (parts: Parts) => {
    const license = { ...(parts.lease.claims['license'] as Members), ...terms };
    return answerWith(parts, { lease: withClaims(parts.lease, { ...claims, license }) });
  };
  const ended = '2026-02-28T23:59:59+00:00';
  return [
    {
      name: 'a lease with entitlements, an end and a limit of uses',
      expected: 'valid',
      entitlements,
      answer: lease({ expires_at: '2099-12-31T23:59:59+00:00', uses_limit: 500, entitlements }, {}),
    },
    {
      name: 'a lease in the grace after the end of its license',
      expected: 'valid',
      entitlements,
      answer: lease({ expires_at: ended, entitlements }, {}),
    },
    {
      name: 'a lease that has expired with its license',
      expected: 'expired',
      answer: lease({ expires_at: ended, entitlements }, { exp: Date.parse(ended) / 1000 }),
    },
    {
      name: 'a notice of a license that has ended',
      expected: 'license_expired',
      answer: (parts) =>
        noticeWith(parts, { notice: withClaims(parts.notice, { expired_at: Date.parse(ended) / 1000 }) }),
    },
  ];
}

/** Each member of each document changed after it was signed, and single bytes of it. */
function tamperedCases(keys: Keys): Case[] {
  const sample = partsOf(keys, { licenseKey: 'KEY', nonce: 'nonce' });
  const drafts = {
    keys: sample.statement,
    lease: sample.lease,
    proof: { header: { alg: '', typ: '', jwk: {} }, claims: { aud: '', nonce: '', lease_hash: '' } },
    notice: sample.notice,
  };
  return Object.entries(drafts).flatMap(([document, draft]) => {
    const answer = document === 'notice' ? noticeWith : answerWith;
    const cases: Case[] = [];
    for (const part of ['header', 'claims'] as const) {
      for (const member of Object.keys(draft[part])) {
        cases.push({
          name: `the ${document} document with another ${member} than was signed`,
          expected: faultOf(document, part, member),
          isTampered: true,
          answer: (parts) =>
            replace(answer(parts), document, (text) => tamper(text, part, otherValue(member))),
        });
      }
    }
    return cases;
  });
}

function replace(answer: LeaseAnswer, document: string, change: (text: string) => string): LeaseAnswer {
  return { ...answer, [document]: change((answer as unknown as Record<string, string>)[document] ?? '') };
}

/** What is found out first if a member was changed after the document was signed. */
function faultOf(document: string, part: 'header' | 'claims', member: string): LeaseErrorCode {
  if (part === 'claims') return 'bad_signature';
  if (member === 'typ') return 'wrong_type';
  if (member === 'kid') return 'unknown_key';
  return member === 'jwk' && document === 'proof' ? 'wrong_device' : 'malformed';
}

/** Gives a member a value of the same kind. */
function otherValue(member: string): (members: Members) => Members {
  return (members) => ({ ...members, [member]: changed(members[member]) });
}

function changed(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'string')
    return value.endsWith('A') ? `${value.slice(0, -1)}E` : `${value.slice(0, -1)}A`;
  if (typeof value === 'boolean') return !value;
  if (Array.isArray(value)) return value.slice(1);
  const entries = Object.entries(value as Members);
  return Object.fromEntries(
    entries.map(([name, inner]) => [name, name === 'kty' || name === 'crv' ? inner : changed(inner)]),
  );
}
