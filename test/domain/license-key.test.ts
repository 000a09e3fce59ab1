import { describe, expect, it } from 'vitest';
import { licenseKeyBytes, licenseKeyFrom, parseLicenseKey } from '../../src/domain/license-key.ts';

describe('a generated license key', () => {
  it('is four groups of five letters, one for the low five bits of each byte', () => {
    const bytes = Uint8Array.from({ length: licenseKeyBytes }, (_, index) => index);
    expect(licenseKeyFrom(bytes)).toBe('ABCDE-FGHJK-LMNPQ-RSTUV');
    expect(licenseKeyFrom(bytes.map((byte) => byte + 12))).toBe('NPQRS-TUVWX-YZ234-56789');
    expect(licenseKeyFrom(bytes.map((byte) => byte | 0xe0))).toBe('ABCDE-FGHJK-LMNPQ-RSTUV');
  });

  it('is found in any letter case', () => {
    expect(parseLicenseKey('abcde-FGHJK-lmnpq-RsTuV')).toBe('ABCDE-FGHJK-LMNPQ-RSTUV');
  });
});

describe('an imported license key', () => {
  it.each([
    'abc',
    'ABCDE-FGHIJ-LMNPQ-RSTUV',
    'abcde-fghjk-lmnpq',
    'xabcde-fghjk-lmnpq-rstuv',
    'abcde-fghjk-lmnpq-rstuvx',
    'ümlaut 1',
    '0',
  ])('is kept as given: %s', (key) => {
    expect(parseLicenseKey(key)).toBe(key);
  });

  it('loses the white space around it, not that within', () => {
    expect(parseLicenseKey(' \t a b \n')).toBe('a b');
  });

  it('has 100 characters at most', () => {
    expect(parseLicenseKey('x'.repeat(100))).toBe('x'.repeat(100));
    expect(parseLicenseKey('x'.repeat(101))).toBeNull();
    expect(parseLicenseKey(` ${'x'.repeat(100)} `)).toBe('x'.repeat(100));
  });

  it('has as many characters as people count, where JavaScript counts some twice', () => {
    expect(parseLicenseKey('😀'.repeat(100))).toBe('😀'.repeat(100));
    expect(parseLicenseKey('😀'.repeat(101))).toBeNull();
  });

  it.each(['', ' ', '\n\t'])('is none when nothing is left of it', (text) => {
    expect(parseLicenseKey(text)).toBeNull();
  });
});
