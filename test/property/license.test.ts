import {
  assert,
  constantFrom,
  array,
  constant,
  integer,
  nat,
  oneof,
  property,
  record,
  boolean,
  uint8Array,
  string,
} from 'fast-check';
import { describe, it, expect } from 'vitest';
import { countApplied } from '../../src/domain/outbox/delivery.ts';
import { effectOnUses, usesAfter } from '../../src/domain/outbox/uses.ts';
import {
  licenseKeyBytes,
  licenseKeyFrom,
  parseLicenseKey,
  licenseAfter,
  type License,
  type LicenseTrigger,
} from '../../src/domain/license.ts';

const trigger = constantFrom<LicenseTrigger>('usage', 'decrease', 'enable', 'disable', 'refund');
type CounterChange = { kind: 'usage' | 'decrease'; amount: number };
const decrease: CounterChange = { kind: 'decrease', amount: 1 };
const use = record<CounterChange>({ kind: constant('usage'), amount: integer({ min: 1, max: 5 }) });
const counterChange = oneof(use, constant(decrease));
const license = record<License>({
  licenseKey: string(),
  productKey: string(),
  buyerEmail: string(),
  uses: nat(20),
  enabled: boolean(),
  createdAt: nat(),
});

function countOf(base: number, changes: readonly CounterChange[]): number {
  return changes.reduce(usesAfter, base);
}

describe('a license after any changes', () => {
  it('a license never has fewer than 0 uses, and changes by at most one at a time', () => {
    assert(
      property(license, array(trigger), (before, triggers) => {
        let present = before;
        for (const one of triggers) {
          const next = licenseAfter(present, one);
          expect(next.uses).toBeGreaterThanOrEqual(0);
          expect(Math.abs(next.uses - present.uses)).toBeLessThanOrEqual(1);
          present = next;
        }
      }),
    );
  });

  it('a license is enabled or disabled as the last trigger about its state says', () => {
    assert(
      property(license, array(trigger), (before, triggers) => {
        const last = triggers.findLast((one) => one !== 'usage' && one !== 'decrease');
        const after = triggers.reduce(licenseAfter, before);
        expect(after.enabled).toBe(last === undefined ? before.enabled : last === 'enable');
      }),
    );
  });

  it('the order of changes of a license matters only at the floor of 0 uses', () => {
    const one: CounterChange = { kind: 'usage', amount: 1 };
    expect(countOf(0, [decrease, one])).not.toBe(countOf(0, [one, decrease]));
    assert(
      property(array(counterChange, { maxLength: 20 }), (changes) => {
        const moved = changes.reduce((sum, each) => sum + effectOnUses(each), 0);
        expect(countOf(changes.length, changes)).toBe(changes.length + moved);
      }),
    );
  });
});

describe('reconciling uncertain operations by a count', () => {
  const changes = array(counterChange, { maxLength: 12 });

  it('reconciling by a count leads to the true count, whichever first operations had been applied', () => {
    assert(
      property(nat(4), changes, nat(12), (base, all, cut) => {
        const arrived = Math.min(cut, all.length);
        const read = countOf(base, all.slice(0, arrived));
        const applied = countApplied(base, all, read);
        expect(applied).not.toBeNull();
        expect(countOf(read, all.slice(applied ?? 0))).toBe(countOf(read, all.slice(arrived)));
      }),
    );
  });

  it('reconciling by a count finds no explanation only if none exists', () => {
    assert(
      property(nat(4), changes, integer({ min: -2, max: 20 }), (base, all, read) => {
        const reached = all.map((_, index) => countOf(base, all.slice(0, index + 1)));
        expect(countApplied(base, all, read) === null).toBe(![base, ...reached].includes(read));
      }),
    );
  });

  it('reconciling by a count is exact if all operations count the same way', () => {
    assert(
      property(nat(4), array(use, { maxLength: 12 }), nat(12), (base, all, cut) => {
        const arrived = Math.min(cut, all.length);
        expect(countApplied(base, all, countOf(base, all.slice(0, arrived)))).toBe(arrived);
      }),
    );
  });
});

describe('a license key', () => {
  const bytes = uint8Array({ minLength: licenseKeyBytes, maxLength: licenseKeyBytes });
  const space = constantFrom(' ', '\t', '\n', '\r', '\u00a0', '\u2003', '\ufeff');
  const white = array(space, { maxLength: 4 }).map((spaces) => spaces.join(''));

  it('a generated license key has the format, and is its own stored form', () => {
    assert(
      property(bytes, (random) => {
        const key = licenseKeyFrom(random);
        expect(key).toMatch(/^[A-HJ-NP-Z2-9]{5}(-[A-HJ-NP-Z2-9]{5}){3}$/);
        expect(parseLicenseKey(key)).toBe(key);
      }),
    );
  });

  it('a generated license key is found in any letter case and with surrounding white space', () => {
    assert(
      property(
        bytes,
        array(boolean(), { minLength: 23, maxLength: 23 }),
        white,
        white,
        (random, cases, ...around) => {
          const key = licenseKeyFrom(random);
          const written = Array.from(key, (letter, index) =>
            cases[index] === true ? letter.toLowerCase() : letter,
          );
          expect(parseLicenseKey(around.join(written.join('')))).toBe(key);
        },
      ),
    );
  });

  it('a generated license key depends on the low five bits of each byte only', () => {
    assert(
      property(bytes, bytes, (one, other) => {
        const isSame = one.every((byte, index) => (byte & 31) === ((other[index] ?? 0) & 31));
        expect(licenseKeyFrom(one) === licenseKeyFrom(other)).toBe(isSame);
      }),
    );
  });

  it('a license key has one stored form: parsing it again changes nothing', () => {
    assert(
      property(string({ unit: 'grapheme', maxLength: 120 }), (text) => {
        const key = parseLicenseKey(text);
        const trimmed = text.trim();
        expect(key === null).toBe(trimmed === '' || trimmed.length > 100);
        expect(key === null ? null : parseLicenseKey(key)).toBe(key);
      }),
    );
  });
});
