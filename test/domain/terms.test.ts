import { describe, expect, it, test } from 'vitest';
import { licenseAfter } from '../../src/domain/license.ts';
import {
  asAnswered,
  statusAt,
  statusEndsAt,
  withStatus,
  type LicenseStatus,
} from '../../src/domain/terms.ts';
import { buildLicense } from '../support/builders/store-builders.ts';

const end = 1_000_000;
const grace = { expiresAt: end, graceUntil: end + 5_000 };

describe('the status of a license', () => {
  it.each<[string, Parameters<typeof statusAt>[0], number, LicenseStatus]>([
    ['is active at its last instant', { enabled: true, expiresAt: end }, end, 'active'],
    ['is expired a millisecond later', { enabled: true, expiresAt: end }, end + 1, 'expired'],
    ['is grace after the end, if its product has a grace', { enabled: true, ...grace }, end + 1, 'grace'],
    ['is grace at the last instant of the grace', { enabled: true, ...grace }, end + 5_000, 'grace'],
    ['is expired a millisecond after the grace', { enabled: true, ...grace }, end + 5_001, 'expired'],
    ['is active without an end', { enabled: true, expiresAt: null }, end, 'active'],
    ['is disabled after the end, too', { enabled: false, expiresAt: end }, end + 1, 'disabled'],
    ['is disabled before the end, too', { enabled: false, expiresAt: end }, end, 'disabled'],
  ])('%s', (_, license, now, expected) => {
    expect(statusAt(license, now)).toBe(expected);
  });

  it('ends with the end of the license, then with the grace, and otherwise never', () => {
    const license = buildLicense(grace);
    const endAt = (now: number): number => statusEndsAt(asAnswered(license, now));
    expect([end, end + 1, end + 5_001].map(endAt)).toEqual([end, end + 5_000, Infinity]);
    expect(statusEndsAt(asAnswered(buildLicense({ usesLimit: 3 }), end))).toBe(Infinity);
  });

  it('does not exist for a license without terms, which stays the same object', () => {
    const license = buildLicense();
    expect(asAnswered(license, end)).toBe(license);
    expect(withStatus(license, end)).toBe(license);
  });
});

test('a license is answered as not enabled after its end, and stays enabled for its seller', () => {
  const license = buildLicense({ expiresAt: end });
  expect(asAnswered(license, end + 1)).toEqual({ ...license, enabled: false, status: 'expired' });
  expect(withStatus(license, end + 1)).toEqual({ ...license, enabled: true, status: 'expired' });
});

test('a use beyond the limit leaves a license as it is; a use taken back makes room', () => {
  const license = buildLicense({ uses: 2, usesLimit: 2 });
  expect(licenseAfter(license, 'usage')).toBe(license);
  const less = licenseAfter(license, 'decrease');
  expect(less.uses).toBe(1);
  expect(licenseAfter(less, 'usage').uses).toBe(2);
});
