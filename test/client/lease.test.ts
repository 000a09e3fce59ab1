import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { ConfigurationError, LeaseError, verifyLease, type LeaseCheck } from '../../src/client/index.ts';
import { makeLeaseVectors, type LeaseVector } from '../features/leases/support/vectors.ts';

const now = Date.parse('2026-03-01T12:00:00Z');
const made = makeLeaseVectors();
const { vectors, ...trust } = made;
const nonce = 'a-nonce-of-this-program';

function checkOf({ answer, typed }: LeaseVector): LeaseCheck {
  return { ...trust, ...answer(nonce), licenseKey: typed, nonce, now };
}

/** The verdict, or the reason why there is none. */
function conclude(check: LeaseCheck): string {
  try {
    const said = verifyLease(check);
    if (said.verdict === 'valid') return 'valid';
    return said.reason === 'expired' ? 'license_expired' : said.reason;
  } catch (error) {
    if (!(error instanceof LeaseError)) throw error;
    return error.code;
  }
}

function vector(name: string): LeaseCheck {
  const found = vectors.find((each) => each.name === name);
  if (found === undefined) throw new Error(`There is no answer with the name ${name}.`);
  return checkOf(found);
}

const valid = vector('a lease and its proof');
const disabled = vector('a notice with the state disabled');

it('each answer has another name, and each verdict and each reason of a refusal occurs', () => {
  expect(new Set(vectors.map(({ name }) => name)).size).toBe(vectors.length);
  expect([...new Set(vectors.map(({ expected }) => expected))].toSorted()).toEqual([
    'bad_signature',
    'blocked',
    'disabled',
    'ended',
    'expired',
    'license_expired',
    'malformed',
    'old_keys',
    'outlives_key',
    'replaced',
    'unknown_key',
    'valid',
    'wrong_device',
    'wrong_issuer',
    'wrong_license',
    'wrong_nonce',
    'wrong_product',
    'wrong_type',
  ]);
});

it.each(vectors.map((each) => [each.name, each.expected, each] as const))(
  'the client concludes from %s: %s',
  (_, expected, each) => {
    expect(conclude(checkOf(each))).toBe(expected);
  },
);

it('a valid lease gives the license, the dates, the seats and the version of the keys', () => {
  expect(verifyLease(valid)).toEqual({
    verdict: 'valid',
    license: {
      licenseKey: valid.licenseKey,
      productKey: 'RGsF',
      buyerEmail: '',
      enabled: true,
      uses: 2,
      date: new Date('2026-02-22T10:00:00Z'),
      entitlements: [],
      expiresAt: null,
      graceUntil: null,
      status: 'active',
    },
    activationId: 'activation-1',
    device: expect.stringMatching(/^[\w-]{43}$/) as string,
    issuedAt: new Date('2026-03-01T12:00:00Z'),
    refreshAt: new Date('2026-03-02T12:00:00Z'),
    expiresAt: new Date('2100-01-01T00:00:00Z'),
    rev: now,
    seats: { limit: 3, taken: 1 },
    keysVersion: 3,
    nonceSignedBy: 'device',
  });
});

it('a notice gives its state, the date and the version of the keys', () => {
  expect(verifyLease(disabled)).toEqual({
    verdict: 'refused',
    reason: 'disabled',
    expiredAt: null,
    isSigned: true,
    activationId: 'activation-1',
    device: expect.stringMatching(/^[\w-]{43}$/) as string,
    issuedAt: new Date('2026-03-01T12:00:00Z'),
    rev: now,
    keysVersion: 3,
  });
});

it('a lease of a license with terms gives its entitlements, its end and its status', () => {
  const check = vector('a lease with entitlements, an end and a limit of uses');
  const expiresAt = new Date('2099-12-31T23:59:59Z');
  const entitlements = ['export', 'pro'];
  expect(verifyLease(check)).toMatchObject({ license: { entitlements, expiresAt, status: 'active' } });
  const inGrace = vector('a lease in the grace after the end of its license');
  expect(verifyLease(inGrace)).toMatchObject({ verdict: 'valid', license: { status: 'grace' } });
});

it('a license that has ended is refused by a signed notice, with its end', () => {
  expect(verifyLease(vector('a notice of a license that has ended'))).toMatchObject({
    verdict: 'refused',
    reason: 'expired',
    expiredAt: new Date('2026-02-28T23:59:59Z'),
    isSigned: true,
  });
});

it('a nonce that the issuer has signed into the lease is named as signed by the issuer', () => {
  const check = vector('a lease into which the issuer has signed the nonce, without a proof');
  expect(verifyLease(check)).toMatchObject({ nonceSignedBy: 'issuer' });
});

it('a lease without a nonce is valid for a program that sends none', () => {
  const { nonce: _, proof: __, ...rest } = valid;
  expect(verifyLease(rest)).toMatchObject({ verdict: 'valid', nonceSignedBy: null });
});

it('a lease is valid until the millisecond in which it expires, by the clock of the program', () => {
  const end = Date.parse('2100-01-01T00:00:00Z');
  expect(conclude({ ...valid, now: end - 1 })).toBe('valid');
  expect(conclude({ ...valid, now: end })).toBe('expired');
  expect(conclude({ ...valid, now: new Date(end) })).toBe('expired');
  // A clock that is two days slow, as after an empty battery.
  expect(conclude({ ...valid, now: now - 2 * 24 * 60 * 60 * 1000 })).toBe('valid');
});

it('a license key is compared as the API compares license keys', () => {
  const dashed = valid.licenseKey.replaceAll('-', '\u2013');
  for (const licenseKey of [
    valid.licenseKey.toLowerCase(),
    `\t${valid.licenseKey}\n`,
    dashed,
    `\u200b${dashed}`,
  ]) {
    expect(conclude({ ...valid, licenseKey })).toBe('valid');
  }
  for (const licenseKey of ['', valid.licenseKey.replaceAll('-', ''), `${valid.licenseKey}-A`]) {
    expect(conclude({ ...valid, licenseKey })).toBe('wrong_license');
  }
});

it('any other character in the header or the payload of a document is refused', () => {
  let count = 0;
  for (const check of [valid, disabled]) {
    for (const name of ['lease', 'notice', 'keys', 'proof'] as const) {
      const text = check[name];
      if (typeof text !== 'string') continue;
      for (let index = 0; index < text.lastIndexOf('.'); index += 1) {
        for (const other of ['A', '.']) {
          if (text[index] === other) continue;
          const changed = `${text.slice(0, index)}${other}${text.slice(index + 1)}`;
          count += 1;
          expect(() => verifyLease({ ...check, [name]: changed })).toThrow(LeaseError);
        }
      }
    }
  }
  expect(count).toBeGreaterThan(5_000);
});

it('any other byte in the header or the payload of a document is refused', () => {
  let count = 0;
  for (const check of [valid, disabled]) {
    for (const name of ['lease', 'notice', 'keys', 'proof'] as const) {
      for (const part of [0, 1]) {
        const parts = check[name]?.split('.') ?? [];
        const bytes = Buffer.from(parts[part] ?? '', 'base64url');
        // One bit of each byte: each of the eight in turn.
        for (let index = 0; index < bytes.length; index += 1) {
          const changed = Buffer.from(bytes);
          changed[index] = (changed[index] ?? 0) ^ (1 << (index & 7));
          count += 1;
          const text = parts.with(part, changed.toString('base64url')).join('.');
          expect(() => verifyLease({ ...check, [name]: text })).toThrow(LeaseError);
        }
      }
    }
  }
  expect(count).toBeGreaterThan(2_000);
});

it('no document is accepted in place of another', () => {
  const documents = { ...valid, notice: disabled.notice };
  const names = ['lease', 'notice', 'keys', 'proof'] as const;
  for (const place of names) {
    const check = place === 'notice' ? disabled : valid;
    for (const other of names.filter((name) => name !== place)) {
      expect([place, other, conclude({ ...check, [place]: documents[other] })]).toEqual([
        place,
        other,
        'wrong_type',
      ]);
    }
  }
});

it('a program that has stored its device and its activation refuses a notice about another one', () => {
  const { activationId, device } = verifyLease(valid);
  const file = { ...disabled, nonce: undefined, proof: undefined };
  expect(conclude({ ...file, activationId, device })).toBe('disabled');
  expect(conclude({ ...file, activationId: 'activation-2', device })).toBe('wrong_activation');
  expect(conclude({ ...file, activationId, device: 'A'.repeat(43) })).toBe('wrong_device');
  expect(conclude({ ...valid, activationId: 'activation-2', device })).toBe('valid');
  expect(conclude({ ...valid, device: 'A'.repeat(43) })).toBe('wrong_device');
  for (const nothing of [null, undefined]) {
    expect(conclude({ ...file, activationId: nothing, device: nothing })).toBe('disabled');
  }
});

it('documents of two vendors, or for two nonces, are never valid together', () => {
  const other = makeLeaseVectors('another vendor');
  const typed = vectors[0]?.typed ?? '';
  const worlds = [made, other].flatMap((vendor) =>
    [nonce, 'another-nonce-of-the-program'].map((sent) => ({
      trust: { issuer: vendor.issuer, product: vendor.product, roots: vendor.roots },
      vendor,
      nonce: sent,
      ...vendor.vectors[0]?.answer(sent),
    })),
  );
  const verdicts = worlds.flatMap((trusted) =>
    worlds.flatMap((lease) =>
      worlds.flatMap((keys) =>
        worlds.map((proof) => {
          const check = {
            lease: lease.lease,
            keys: keys.keys ?? '',
            proof: proof.proof,
            licenseKey: typed,
            now,
          };
          const said = conclude({ ...trusted.trust, ...check, nonce: trusted.nonce });
          const isOneVendor = [lease, keys, proof].every(({ vendor }) => vendor === trusted.vendor);
          return [said === 'valid', isOneVendor && proof.nonce === trusted.nonce];
        }),
      ),
    ),
  );
  expect(verdicts).toHaveLength(4 ** 4);
  expect(verdicts.filter(([isValid, isExpected]) => isValid !== isExpected)).toEqual([]);
  expect(verdicts.filter(([isValid]) => isValid)).not.toHaveLength(0);
});

it.each([
  ['a lease and a notice', { ...valid, notice: disabled.notice }],
  ['a lease and a notice that is no text', { ...valid, notice: 7 as unknown as string }],
  ['a lease that is no text', { ...valid, lease: 7 as unknown as string }],
  ['a proof that is no text', { ...valid, proof: 7 as unknown as string }],
  ['neither a lease nor a notice', { ...valid, lease: undefined }],
  ['no key statement', { ...valid, keys: undefined as unknown as string }],
  ['a document of more than 8 KiB', { ...valid, lease: `${valid.lease}${'A'.repeat(8192)}` }],
  ['a document of two parts', { ...valid, lease: 'a.b' }],
  ['a lease with padding', { ...valid, lease: `${valid.lease}==` }],
])('an answer with %s is malformed', (_, check) => {
  expect(conclude(check)).toBe('malformed');
});

it.each([
  ['no roots', { roots: [] }],
  ['a root that is no key', { roots: [{ kty: 'EC', crv: 'P-384', x: '', y: '' }] }],
  [
    'the private part of a root',
    { roots: [{ ...trust.roots[0], d: 'AAAA' } as (typeof trust.roots)[number]] },
  ],
  ['no issuer', { issuer: '' }],
  ['no product', { product: undefined as unknown as string }],
  ['a version that is no number', { minKeysVersion: '3' as unknown as number }],
  ['NaN as the version', { minKeysVersion: Number.NaN }],
  ['null as the version', { minKeysVersion: null as unknown as number }],
  ['a version below 0', { minKeysVersion: -1 }],
  ['an empty nonce', { nonce: '' }],
  ['a nonce that is no text', { nonce: 7 as unknown as string }],
  ['an empty device', { device: '' }],
  ['an activation that is no text', { activationId: {} as unknown as string }],
  ['a license key that is no text', { licenseKey: 7 as unknown as string }],
  ['a proof without a nonce', { nonce: undefined }],
  ['a proof that is no text without a nonce', { nonce: undefined, proof: 7 as unknown as string }],
])('a program that passes %s gets a ConfigurationError', (_, wrong) => {
  expect(() => verifyLease({ ...valid, ...wrong })).toThrow(ConfigurationError);
});

it('a program that passes no object gets a ConfigurationError', () => {
  for (const check of [undefined, null, 'lease', 7]) {
    expect(() => verifyLease(check as unknown as LeaseCheck)).toThrow(ConfigurationError);
  }
});

const ended = vector('a lease that has expired');

it.each([
  ['NaN', Number.NaN],
  ['an infinite number', Number.POSITIVE_INFINITY],
  ['an infinite number below 0', Number.NEGATIVE_INFINITY],
  ['a Date that is not valid', new Date('soon')],
  ['a date as a text', '2026-03-01T12:00:00Z'],
  ['a number as a text', String(now)],
  ['an object', {}],
  ['a list', [now]],
  ['null', null],
  ['true', true],
  ['a bigint', BigInt(now)],
  ['a function', () => now],
])('a program that passes %s as the time gets a ConfigurationError for every lease', (_, time) => {
  for (const check of [ended, valid, disabled]) {
    const wrong = { ...check, now: time as unknown as number };
    expect(() => verifyLease(wrong)).toThrow(ConfigurationError);
    expect(() => verifyLease(wrong)).toThrow('now must be a valid Date or a number of ms since 1970.');
  }
});

it('a lease that has ended is refused for every valid time, also for a Date of another realm', () => {
  expect(conclude({ ...ended, now: undefined })).toBe('expired');
  expect(conclude({ ...ended, now: new Date(now) })).toBe('expired');
  expect(conclude({ ...ended, now: runInNewContext(`new Date(${now})`) as Date })).toBe('expired');
  expect(conclude({ ...valid, now: runInNewContext(`new Date(${now})`) as Date })).toBe('valid');
});

it('a message of an error names neither the license key nor a document', () => {
  const messages = vectors.flatMap((each) => {
    try {
      verifyLease(checkOf(each));
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
  expect(messages.length).toBeGreaterThan(50);
  for (const message of messages) {
    expect(message).not.toContain('WTKP4');
    expect(message.length).toBeLessThan(120);
  }
});
