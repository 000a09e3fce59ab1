import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LeaseError } from '../../src/client/error.ts';
import { checkSignature, type PublicKey, type SignedDocument } from '../../src/client/signed-document.ts';

/* The signatures of the project Wycheproof, with the mistakes of ECDSA libraries (support/wycheproof/README.md). */

const file = join(import.meta.dirname, '../support/wycheproof/ecdsa-p256-sha256-p1363.tsv');
const [, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n');
const tests = lines.map((line) => {
  const [id = '', x = '', y = '', message = '', signature = '', result = '', comment = ''] = line.split('\t');
  return { name: `${id} (${comment})`, x, y, message, signature, result };
});
const base64url = (hexadecimal: string) => Buffer.from(hexadecimal, 'hex').toString('base64url');

function conclude(document: SignedDocument, key: PublicKey): string {
  try {
    checkSignature(document, key);
    return 'valid';
  } catch (error) {
    if (error instanceof LeaseError) return 'invalid';
    throw error;
  }
}

it('there are 173 signatures that are valid, and 89 that are not', () => {
  const count = (result: string) => tests.filter((each) => each.result === result).length;
  expect([count('valid'), count('invalid'), tests.length]).toEqual([173, 89, 262]);
});

it.each(tests.map((each) => [each.name, each.result, each] as const))(
  'the check concludes from the signature of test %s: %s',
  (_, result, { x, y, message, signature }) => {
    const key = { kty: 'EC', crv: 'P-256', x: base64url(x), y: base64url(y) };
    const document = {
      name: 'lease',
      kid: '',
      jwk: null,
      claims: {},
      signed: Buffer.from(message, 'hex').toString(),
      signature: Buffer.from(signature, 'hex'),
    };
    expect(Buffer.from(document.signed).toString('hex')).toBe(message);
    expect(conclude(document, key)).toBe(result);
  },
);
