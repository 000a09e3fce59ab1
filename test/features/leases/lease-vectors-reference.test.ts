import { expect, it } from 'vitest';
import { LeaseError, verifyLease, type LeaseCheck } from '../../../src/client/index.ts';
import { end, now, type Expected } from './support/answer.ts';
import { readExample } from '../../support/reference/guides.ts';
import { makeLeaseVectors } from './support/vectors.ts';

/*
 * `npm run docs` writes examples/leases/vectors.json again. Its keys and signatures are the same each time
 * (support/documents.ts). The programs in examples/clients are tested with the same answers, with the nonce that each
 * run makes (e2e/lease-examples.test.ts).
 */

const { vectors, issuer, product, roots, minKeysVersion } = makeLeaseVectors();
const nonce = 'a-nonce-of-this-program';
const verdicts = new Set<Expected>(['valid', 'disabled', 'ended', 'blocked', 'replaced', 'license_expired']);
const listed = vectors.filter(({ isTampered }) => isTampered !== true);
const isVerdict = ({ expected }: { expected: Expected }) => verdicts.has(expected);

/** As the file names it. */
function nameOf(expected: Expected): string {
  if (expected === 'license_expired') return 'expired';
  return verdicts.has(expected) ? expected : 'not_proven';
}

/** The verdict, or the reason why there is none. */
function conclude(check: LeaseCheck): string {
  try {
    const said = verifyLease(check);
    if (said.verdict === 'valid') return ['valid', ...said.license.entitlements].join(' ');
    return said.reason === 'expired' ? 'license_expired' : said.reason;
  } catch (error) {
    if (error instanceof LeaseError) return error.code;
    throw error;
  }
}

it('the file has valid answers, and at least 40 invalid ones with the reason of each', async () => {
  expect(listed.filter(isVerdict).length).toBeGreaterThanOrEqual(12);
  const invalid = listed.filter((each) => !isVerdict(each));
  expect(invalid.filter(({ isForStrictParsers }) => isForStrictParsers !== true).length).toBeGreaterThan(40);
  const file = {
    description:
      'What a holder answers to GET /agent/v1/lease, and what a program must conclude (examples/guides/leases.md). The keys are made for this file: trust them nowhere else.',
    issuer,
    product,
    roots,
    lowest_keys_version: minKeysVersion,
    nonce,
    valid_from: new Date(now * 1000).toISOString(),
    valid_until: new Date(end * 1000).toISOString(),
    answers: listed.map(({ name, typed, expected, entitlements, answer, isForStrictParsers }) => ({
      name,
      license_key: typed,
      expected: nameOf(expected),
      ...(entitlements !== undefined && { entitlements: entitlements.join(' ') }),
      ...(!verdicts.has(expected) && { reason: expected }),
      // The issuer never signs such a document: a program may accept it.
      ...(isForStrictParsers === true && { may_be_accepted: true }),
      data: answer(nonce),
    })),
  };
  const text = `${JSON.stringify(file, null, 2)}\n`;
  await expect(text).toMatchFileSnapshot('../../../examples/leases/vectors.json');
});

it.each(listed.map((each) => [each.name, each] as const))(
  'verifyLease gives the verdict of the file for %s',
  (_, { typed, expected, entitlements = [], answer }) => {
    const check = { issuer, product, roots, minKeysVersion, nonce, licenseKey: typed, ...answer(nonce) };
    expect(conclude(check)).toBe([expected, ...entitlements].join(' '));
  },
);

it('the examples of documents in the guide are those of the file', () => {
  const [, section = ''] = readExample('guides/leases.md').split('### Every other language');
  const examples = [...section.matchAll(/```json\n(.*?)```/gs)].map(
    ([, text = '']) => JSON.parse(text) as unknown,
  );
  const payloads = (name: string, documents: readonly ('keys' | 'lease' | 'notice' | 'proof')[]) => {
    const data = listed.find((each) => each.name === name)?.answer(nonce);
    return documents.map((document) => {
      const [, payload = ''] = data?.[document]?.split('.') ?? [];
      return JSON.parse(Buffer.from(payload, 'base64url').toString()) as unknown;
    });
  };
  const [keys, lease, proof] = payloads('a lease and its proof', ['keys', 'lease', 'proof']);
  const [notice] = payloads('a notice with the state disabled', ['notice']);
  expect(examples).toEqual([keys, lease, notice, proof]);
});
