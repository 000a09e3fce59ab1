import { describe, expect, it } from 'vitest';
import {
  licenseAfter,
  countAfter,
  generatedKeyIn,
  isTooLongKey,
  licenseKeysIn,
  describeMistake,
  licenseTransitions,
  type License,
  type LicenseTrigger,
  licenseKeyBytes,
  licenseKeyFrom,
  parseLicenseKey,
} from '../../src/domain/license.ts';

type State = 'enabled' | 'disabled';

/** Specification 3.1, cell by cell: the state after it, and the count after it when it was 3. */
const table: Record<State, Record<LicenseTrigger, { state: State; uses: number }>> = {
  enabled: {
    usage: { state: 'enabled', uses: 4 },
    decrease: { state: 'enabled', uses: 2 },
    enable: { state: 'enabled', uses: 3 },
    disable: { state: 'disabled', uses: 3 },
    refund: { state: 'disabled', uses: 3 },
  },
  disabled: {
    usage: { state: 'disabled', uses: 4 },
    decrease: { state: 'disabled', uses: 2 },
    enable: { state: 'enabled', uses: 3 },
    disable: { state: 'disabled', uses: 3 },
    refund: { state: 'disabled', uses: 3 },
  },
};

const license: License = {
  licenseKey: 'KEY',
  productKey: 'press',
  buyerEmail: 'a@example.com',
  uses: 3,
  enabled: true,
  createdAt: 1,
};

const cells = Object.entries(table).flatMap(([from, row]) =>
  Object.entries(row).map(([trigger, to]) => ({
    from: from as State,
    trigger: trigger as LicenseTrigger,
    to,
  })),
);

describe('a license', () => {
  it.each(cells)('that is $from is $to.state with $to.uses uses after $trigger', ({ from, trigger, to }) => {
    const before = { ...license, enabled: from === 'enabled' };
    expect(licenseAfter(before, trigger)).toEqual({
      ...license,
      enabled: to.state === 'enabled',
      uses: to.uses,
    });
  });

  it('has no other states and triggers than these', () => {
    const shape = Object.entries(table).map(([state, row]) => [state, Object.keys(row)]);
    expect(Object.entries(licenseTransitions).map(([state, row]) => [state, Object.keys(row)])).toEqual(
      shape,
    );
  });

  it('is left as it was: a change makes a new one', () => {
    const before = { ...license };
    licenseAfter(before, 'disable');
    expect(before).toEqual(license);
  });
});

describe('the count of uses', () => {
  it('is not changed by a decrease at 0', () => {
    expect(countAfter(0, 'decrease')).toBe(0);
  });

  it('falls to 0 and no further', () => {
    expect(countAfter(1, 'decrease')).toBe(0);
  });

  it('that an upstream let fall below 0 is not taken further down, and rises one by one', () => {
    expect(countAfter(-2, 'decrease')).toBe(-2);
    expect(countAfter(-2, 'usage')).toBe(-1);
  });
});

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

describe('a pasted license key', () => {
  const key = 'ABCDE-FGHJK-LMNPQ-RSTUV';

  it.each([
    `"${key}"`,
    `\u201c${key}\u201d.`,
    `\u201e${key}\u201c`,
    `(${key}),`,
    `<${key}>`,
    `License key: ${key}`,
    `license_key=${key}`,
    `Lizenzschl\u00fcssel:\u00a0\u201e${key.toLowerCase()}\u201c!`,
    'ABCDE FGHJK LMNPQ RSTUV',
    'ABCDE - FGHJK \u2013 LMNPQ \u2014 RSTUV',
    'ABCDE-FGHJK-\r\nLMNPQ-RSTUV',
    'abcdefghjklmnpqrstuv',
    key.replaceAll('-', '\u2796'),
    key.replaceAll('-', '\u2043'),
    `${key.replace('C', '\u0000C')}\u2800\ufffc\u0007`,
  ])('is read as the key that it contains: %j', (pasted) => {
    expect(licenseKeysIn(pasted).at(-1)).toBe(key);
    expect(generatedKeyIn(pasted)).toBe(key);
  });

  it.each([
    ['"old key 1".', ['"old key 1".', 'old key 1']],
    ['Key: A:B', ['Key: A:B', 'B']],
    ['AB\u20131', ['AB\u20131', 'AB-1']],
    ['plain', ['plain']],
    ['https://example.com/', ['https://example.com/']],
    ['...', ['...']],
    ['', []],
  ])('is looked up as it is first: %j', (pasted, looked) => {
    expect(licenseKeysIn(pasted)).toEqual(looked);
  });

  it.each([
    ['https://example.com/KEY', 'a web address'],
    ['www.example.com', 'a web address'],
    ['ada@example.com', 'an e-mail address'],
    ['KEY-1', null],
  ])('is no license key if it is an address: %j', (text, mistaken) => {
    expect(describeMistake(text)).toBe(mistaken);
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

  it('has 1,024 characters at most, and is looked up at any length', () => {
    expect(isTooLongKey('x'.repeat(1_024))).toBe(false);
    expect(isTooLongKey('x'.repeat(1_025))).toBe(true);
    expect(parseLicenseKey(` ${'x'.repeat(8_000)} `)).toBe('x'.repeat(8_000));
  });

  it('has 2,048 bytes at most: a row of an index in PostgreSQL has no room for more', () => {
    expect(isTooLongKey('😀'.repeat(512))).toBe(false);
    expect(isTooLongKey('😀'.repeat(513))).toBe(true);
  });

  it.each(['', ' ', '\n\t'])('is none when nothing is left of it', (text) => {
    expect(parseLicenseKey(text)).toBeNull();
  });
});
