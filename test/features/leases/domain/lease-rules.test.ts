import { describe, expect, it } from 'vitest';
import {
  type LeaseLimits,
  endOf,
  growthOf,
  leaseDates,
  nextRev,
  waitsUntil,
} from '../../../../src/features/leases/domain/lease-rules.ts';
import { usesAfter } from '../../../../src/features/leases/domain/lease.ts';
import type { License } from '../../../../src/domain/license.ts';
import { buildActivation, buildLease, buildRequest, thumbprint } from '../support/activation-builders.ts';
import { at, buildLicense } from '../../../support/builders/store-builders.ts';

const day = 86_400_000;
const minute = 60_000;

describe('totals of uses', () => {
  const before = { recorded: 5, returned: 2 };
  const cases = [
    ['the same totals have not grown', { recorded: 5, returned: 2 }, { recorded: 0, returned: 0 }],
    ['higher totals have grown', { recorded: 8, returned: 3 }, { recorded: 3, returned: 1 }],
    [
      'totals may grow by 10,000 in one request',
      { recorded: 10_005, returned: 2 },
      { recorded: 10_000, returned: 0 },
    ],
    ['totals may not grow by more', { recorded: 10_006, returned: 2 }, null],
    ['the recorded uses do not go back', { recorded: 4, returned: 2 }, null],
    ['the returned uses do not go back', { recorded: 5, returned: 1 }, null],
  ] as const;
  for (const [name, after, growth] of cases) {
    it(`totals of uses: ${name}`, () => {
      expect(growthOf(before, after)).toEqual(growth);
    });
  }

  it('recorded uses are counted before returned uses, and the count stops at 0', () => {
    expect(usesAfter(0, { recorded: 2, returned: 2 })).toBe(0);
    expect(usesAfter(1, { recorded: 0, returned: 3 })).toBe(0);
    expect(usesAfter(4, { recorded: 3, returned: 1 })).toBe(6);
  });
});

describe('the dates of a lease', () => {
  const terms = { termMs: 30 * day, refreshMs: day };
  const limits: LeaseLimits = { keyNotAfter: Infinity, knownUntil: Infinity, endsAt: Infinity, until: null };
  const dates = (changes: Partial<LeaseLimits>, of = terms, now = at) =>
    leaseDates(of, { ...limits, ...changes }, now);

  it('a lease ends after the term, and is renewed after `refresh`', () => {
    expect(dates({})).toEqual({ expiresAt: at + 30 * day, refreshAt: at + day });
  });

  it('a lease is not longer than the key that signs it', () => {
    expect(dates({ keyNotAfter: at + 10 * day })?.expiresAt).toBe(at + 10 * day);
  });

  it('a lease is not longer than the license is known', () => {
    expect(dates({ knownUntil: at + 3 * day })?.expiresAt).toBe(at + 3 * day);
  });

  it('a lease is not longer than its license', () => {
    expect(dates({ endsAt: at + 3 * day })).toEqual({ expiresAt: at + 3 * day, refreshAt: at + day });
    expect(dates({ endsAt: at + day })).toEqual({ expiresAt: at + day, refreshAt: at + day / 2 });
  });

  it('a lease ends when a person wants it, also after the term', () => {
    expect(dates({ until: at + 300 * day })?.expiresAt).toBe(at + 300 * day);
  });

  it('a short lease is renewed in the middle of its time', () => {
    expect(dates({}, { termMs: 10 * minute, refreshMs: day })?.refreshAt).toBe(at + 5 * minute);
  });

  it('dates are whole seconds that are rounded down', () => {
    const odd = at + 1_999;
    expect(dates({}, { termMs: minute, refreshMs: 10_500 }, odd)).toEqual({
      expiresAt: at + 61_000,
      refreshAt: at + 12_000,
    });
  });

  it('there is no lease that has expired already', () => {
    expect(dates({ keyNotAfter: at })).toBeNull();
    expect(dates({ knownUntil: at + 999 })).toBeNull();
  });
});

describe('the number of a document', () => {
  it('the number of a document is the time of the issuer', () => {
    expect(nextRev({ rev: at - 5 }, at)).toBe(at);
  });

  it('the number of a document is always higher than the last one', () => {
    expect(nextRev({ rev: at }, at)).toBe(at + 1);
    expect(nextRev({ rev: at + 9 }, at)).toBe(at + 10);
  });
});

describe('a request that may wait', () => {
  const activation = buildActivation();
  const signed = (changes: Parameters<typeof buildRequest>[0] = {}) => ({
    request: buildRequest({ act: 'renew', seq: 2, ...changes }),
    device: thumbprint('device-1'),
    digest: 'digest of 2',
  });
  const of = (changes: Partial<License>, now = at + 1) => {
    const license = buildLicense(changes);
    return { license, endsAt: endOf(license), now };
  };

  it('a renewal before one is due waits until one is due', () => {
    expect(waitsUntil(activation, signed(), of({}))).toBe(at + day);
  });

  const answer = {
    kind: 'notice',
    notice: { activationId: 'a', licenseKey: 'KEY-1', state: 'disabled', rev: 1, device: 'd1', issuedAt: at },
  } as const;
  const cases = [
    ['a device takes a seat', activation, signed({ act: 'take' })],
    ['a device gives its seat back', activation, signed({ act: 'end' })],
    ['a nonce waits', activation, signed({ nonce: 'a'.repeat(16) })],
    ['uses were recorded', activation, signed({ uses: { recorded: 1, returned: 0 } })],
    ['uses were returned', activation, signed({ uses: { recorded: 0, returned: 1 } })],
    ['a total went back', buildActivation({ uses: { recorded: 1, returned: 0 } }), signed()],
    ['the request is out of sequence', activation, signed({ seq: 3 })],
    ['the request is repeated', buildActivation({ seq: 2, digest: 'digest of 2' }), signed()],
    ['a history is continued', activation, signed({ challenge: 'c' })],
    ['the activation has ended', buildActivation({ state: 'ended' }), signed()],
    ['the activation is blocked', buildActivation({ state: 'blocked' }), signed()],
    ['the seat has lapsed', buildActivation({ seatUntil: at }), signed()],
    ['the last answer was a notice', buildActivation({ answer }), signed()],
  ] as const;
  for (const [name, which, request] of cases) {
    it(`a request is answered at once if ${name}`, () => {
      expect(waitsUntil(which, request, of({}))).toBeNull();
    });
  }

  it('a renewal that is due is answered at once', () => {
    expect(waitsUntil(activation, signed(), of({}, at + day))).toBeNull();
  });

  it('a device that knows that its license is disabled waits until the license is enabled', () => {
    const disabled = buildActivation({ answer });
    expect(waitsUntil(disabled, signed(), of({ enabled: false }))).toBe(Infinity);
    expect(waitsUntil(disabled, signed(), of({}))).toBeNull();
  });

  it('a device that does not know yet that its license is disabled is answered at once', () => {
    expect(waitsUntil(activation, signed(), of({ enabled: false }))).toBeNull();
  });

  it('a device of a license that has ended waits like one of a disabled license, and is told first', () => {
    const ended = of({ expiresAt: at });
    expect(waitsUntil(activation, signed(), ended)).toBeNull();
    expect(waitsUntil(buildActivation({ answer }), signed(), ended)).toBe(Infinity);
    const inGrace = of({ expiresAt: at, graceUntil: at + day });
    expect(waitsUntil(buildActivation({ answer }), signed(), inGrace)).toBeNull();
  });

  it.each<[string, Partial<License>]>([
    ['its end has moved', { expiresAt: at + 400 * day }],
    ['it has another entitlement', { terms: { entitlements: ['pro'] } }],
    ['it has another limit of uses', { usesLimit: 9 }],
  ])('a renewal of a license is answered at once if %s', (_, changes) => {
    expect(waitsUntil(activation, signed(), of(changes))).toBeNull();
    const lease = buildLease({ license: buildLicense(changes) });
    const renewed = buildActivation({ answer: { kind: 'lease', lease } });
    expect(waitsUntil(renewed, signed(), of(changes))).toBe(at + day);
    expect(waitsUntil(renewed, signed(), of({}))).toBeNull();
  });

  it('what the seller notes about a license changes no lease', () => {
    const terms = { metadata: { tier: 3 }, seats: 9 };
    expect(waitsUntil(activation, signed(), of({ terms }))).toBe(at + day);
  });
});
