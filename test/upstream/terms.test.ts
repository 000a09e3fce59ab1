import { expect, test } from 'vitest';
import { asAnswered, withStatus } from '../../src/domain/terms.ts';
import { readBareLicense } from '../../src/upstream/wire.ts';
import { serializeLicense } from '../../src/wire/license.ts';
import { buildLicense } from '../support/builders/store-builders.ts';

const end = Date.UTC(2030, 0, 1);
const licensed = buildLicense({
  expiresAt: end,
  graceUntil: end + 5_000,
  usesLimit: 9,
  terms: {
    entitlements: ['export', 'pro'],
    metadata: { note: 'ä' },
    seats: 3,
    leaseHoldMs: 0,
    leaseTermMs: 60_000,
    leaseRefreshMs: 10_000,
  },
});

test('an agent reads the terms that a Latchkey writes, and after the end what the seller has set', () => {
  for (const now of [end, end + 1, end + 5_001]) {
    for (const enabled of [true, false]) {
      const license = { ...licensed, enabled };
      for (const answered of [asAnswered(license, now), withStatus(license, now)]) {
        expect(readBareLicense(serializeLicense(answered))).toEqual({ value: license });
      }
    }
  }
});

test('a license without terms is read without them', () => {
  expect(readBareLicense(serializeLicense(buildLicense()))).toEqual({ value: buildLicense() });
});

test('the members of a license without a status are no terms', () => {
  const license = { ...serializeLicense(buildLicense()), expires_at: '2020-01-01T00:00:00Z', seats: 'many' };
  const extra = { expires_at: '2020-01-01T00:00:00Z', seats: 'many' };
  expect(readBareLicense(license)).toEqual({ value: { ...buildLicense(), extra } });
});

test('a license that has ended and whose end cannot be read stays disabled', () => {
  for (const expires_at of ['soon', null, undefined]) {
    const license = { ...serializeLicense(buildLicense({ enabled: false })), status: 'expired', expires_at };
    expect(readBareLicense(license)).toMatchObject({ value: { enabled: false, expiresAt: null } });
  }
});

test('a term that cannot be read is left out, and the license stays readable', () => {
  const deep = JSON.parse(`${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`) as object;
  const license = {
    ...serializeLicense(withStatus(licensed, end)),
    expires_at: 'soon',
    uses_limit: 'few',
    metadata: deep,
    entitlements: [7],
    other: 1,
  };
  expect(readBareLicense(license)).toMatchObject({
    value: { expiresAt: null, usesLimit: null, terms: { seats: 3 }, extra: { other: 1 } },
  });
});
