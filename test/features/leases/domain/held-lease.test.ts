import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  actForLease,
  afterAnswer,
  afterRefusal,
  continuedTotals,
  dueAt,
  heldState,
  heldVerdict,
  licenseOf,
  nextAct,
  pendingUses,
  type ReceivedDocument,
  totalsToSend,
  warningOf,
} from '../../../../src/features/leases/domain/held-lease.ts';
import type { HeldLease } from '../../../../src/features/leases/domain/lease.ts';
import { buildLicense } from '../../../support/builders/store-builders.ts';

const day = 86_400_000;
const none = { recorded: 0, returned: 0 };
const lease: ReceivedDocument['document'] = {
  kind: 'lease',
  text: 'lease',
  issuedAt: 0,
  refreshAt: day,
  expiresAt: 30 * day,
  license: buildLicense({ uses: 3 }),
};
const notice = (state: 'disabled' | 'ended' | 'replaced' | 'blocked'): ReceivedDocument['document'] => ({
  kind: 'notice',
  text: state,
  issuedAt: 0,
  state,
  license: null,
});
const request = { text: 'request', act: 'renew', uses: none } as const;

function held(with_: Partial<HeldLease> = {}): HeldLease {
  return {
    licenseKey: 'KEY-1',
    productKey: 'press',
    activationId: 'a',
    document: lease,
    rev: 5,
    seq: 1,
    request: null,
    uses: none,
    confirmedUses: none,
    wanted: 'active',
    createdAt: 0,
    ...with_,
  };
}

describe('what a holder answers', () => {
  it.each<[string, HeldLease, number, string]>([
    ['a lease before it is due', held(), 0, 'fresh, active'],
    ['a lease that is due', held(), day, 'grace, active'],
    ['a lease just before its end', held(), 30 * day - 1, 'grace, active'],
    ['a lease at its end', held(), 30 * day, 'expired, expired'],
    ['no document', held({ document: null }), 0, 'none, none'],
    ['an unanswered request', held({ document: null, request }), 0, 'none, waiting'],
    ['a seat that was given back', held({ wanted: 'ended', document: notice('ended') }), 0, 'none, ended'],
    ['a seat that is to be given back', held({ wanted: 'ended' }), 0, 'none, waiting'],
    ['a disabled license', held({ document: notice('disabled') }), 99 * day, 'fresh, disabled'],
    ['an ended seat', held({ document: notice('ended') }), 0, 'over, ended'],
    ['a replaced device', held({ document: notice('replaced') }), 0, 'over, replaced'],
    ['a blocked device', held({ document: notice('blocked') }), 0, 'over, blocked'],
  ])('%s', (_, of, now, said) => {
    const found = heldVerdict(of, now);
    const verdict = found.verdict === 'answer' ? found.freshness : found.verdict;
    expect(`${verdict}, ${heldState(of, now)}`).toBe(said);
  });

  it('the answer stays the same until the instant that it names', () => {
    for (const now of [0, day - 1, day, 30 * day - 1]) {
      const found = heldVerdict(held(), now);
      if (found.verdict !== 'answer') throw new Error('there is no answer');
      expect(heldVerdict(held(), found.until)).toMatchObject({ freshness: found.freshness });
      expect(heldVerdict(held(), found.until + 1)).not.toMatchObject({ freshness: found.freshness });
    }
  });

  it('the license has the uses that the issuer has not confirmed, and never fewer than none', () => {
    expect(licenseOf(held({ uses: { recorded: 2, returned: 1 } }))).toMatchObject({ uses: 4, enabled: true });
    expect(licenseOf(held({ uses: { recorded: 0, returned: 9 } })).uses).toBe(0);
    expect(licenseOf(held({ document: notice('disabled') }))).toMatchObject({ uses: 0, enabled: false });
  });
});

describe('which request follows', () => {
  it.each<[string, HeldLease, number, string | null]>([
    ['a lease is renewed when it is due', held(), day, 'renew'],
    [
      'an unanswered seat is asked for again at once',
      held({ request: { ...request, act: 'take' } }),
      0,
      'renew',
    ],
    ['a prepared renewal waits until it is due', held({ request }), day, 'renew'],
    ['uses are sent at once', held({ uses: { recorded: 1, returned: 0 } }), 0, 'renew'],
    ['a seat is given back at once', held({ wanted: 'ended' }), 0, 'end'],
    [
      'the seat of a disabled license is given back, too',
      held({ wanted: 'ended', document: notice('disabled') }),
      0,
      'end',
    ],
    ['a refused seat is not asked for again', held({ document: null, activationId: null }), Infinity, null],
    ['a blocked device does not ask again', held({ document: notice('blocked') }), Infinity, 'renew'],
    [
      'a seat that was given back is over',
      held({ wanted: 'ended', document: notice('ended') }),
      Infinity,
      null,
    ],
  ])('%s', (_, of, due, act) => {
    expect([dueAt(of), nextAct(of)]).toEqual([due, act]);
  });

  it('a seat is taken unless there is a valid lease, and an expired lease is renewed', () => {
    expect(actForLease(held(), 0)).toBeNull();
    expect(actForLease(held(), 40 * day)).toBe('renew');
    expect(actForLease(held({ document: notice('ended') }), 0)).toBe('take');
    expect(actForLease(held({ document: null }), 0)).toBe('take');
  });
});

describe('what an answer changes', () => {
  const sent = held({
    uses: { recorded: 3, returned: 1 },
    request: { ...request, uses: { recorded: 2, returned: 0 } },
  });

  it('a newer lease replaces the document, and confirms the uses of its request', () => {
    const received = { document: { ...lease, text: 'newer' }, activationId: 'a', rev: 6 };
    const after = afterAnswer(sent, 'request', received);
    expect(after).toMatchObject({ rev: 6, request: null, confirmedUses: { recorded: 2, returned: 0 } });
    expect(after.document?.text).toBe('newer');
    expect(pendingUses(after)).toBe(2);
  });

  it('an older lease answers its request, and replaces nothing', () => {
    const after = afterAnswer(sent, 'request', {
      document: { ...lease, text: 'older' },
      activationId: 'a',
      rev: 5,
    });
    expect(after).toMatchObject({ rev: 5, request: null, document: { text: 'lease' } });
    // The count of the document did not have these uses.
    expect(licenseOf(after).uses).toBe(licenseOf(sent).uses);
  });

  it('a notice keeps the license of the last lease, with the uses that were confirmed since', () => {
    const after = afterAnswer(sent, 'request', { document: notice('disabled'), activationId: 'a', rev: 6 });
    expect(licenseOf(after)).toMatchObject({ uses: licenseOf(sent).uses, enabled: false });
  });

  it('a recorded refusal counts as an answer, and any other leaves the number to the next request', () => {
    expect(afterRefusal(sent, true)).toMatchObject({ seq: 1, request: null, confirmedUses: { recorded: 2 } });
    expect(afterRefusal(sent, false)).toMatchObject({ seq: 0, request: null, confirmedUses: none });
  });

  it('a recorded refusal confirms no uses of a device that has never had a document of the issuer', () => {
    const stranger = { ...sent, activationId: null, document: null };
    expect(afterRefusal(stranger, true)).toMatchObject({ seq: 1, request: null, confirmedUses: none });
  });
});

const count = fc.integer({ min: 0, max: 30_000 });
const totals = fc.record({ recorded: count, returned: count });

describe('totals of uses', () => {
  it('one request adds at most 10,000, and repeated requests report everything', () => {
    fc.assert(
      fc.property(totals, (uses) => {
        let of = held({ uses });
        for (let sent = 0; pendingUses(of) > 0; sent += 1) {
          expect(sent).toBeLessThan(7);
          const next = totalsToSend(of);
          const added = next.recorded - of.confirmedUses.recorded + next.returned - of.confirmedUses.returned;
          expect(added).toBeGreaterThan(0);
          expect(added).toBeLessThanOrEqual(10_000);
          of = { ...of, confirmedUses: next };
        }
        expect(of.confirmedUses).toEqual(uses);
      }),
    );
  });

  it('after a restore the totals are never lower than those of the issuer, and have what it did not confirm', () => {
    fc.assert(
      fc.property(totals, totals, totals, fc.boolean(), (confirmedUses, more, uses, isRestored) => {
        const recorded = confirmedUses.recorded + more.recorded;
        const returned = confirmedUses.returned + more.returned;
        const of = held({ confirmedUses, uses: { recorded, returned } });
        const after = continuedTotals(of, { isRestored, uses });
        expect(after.confirmedUses).toEqual(uses);
        expect(after.uses.recorded).toBeGreaterThanOrEqual(uses.recorded + more.recorded);
        expect(after.uses.returned).toBeGreaterThanOrEqual(uses.returned + more.returned);
        expect(after.uses.recorded).toBeGreaterThanOrEqual(isRestored ? recorded : 0);
      }),
    );
  });
});

describe('warnings', () => {
  it.each<[string, HeldLease, number, number | null]>([
    ['a lease that is not due', held(), 0, null],
    ['a lease with more than 14 days', held(), 15 * day, null],
    ['14 days', held(), 16 * day, 14],
    ['7 days', held(), 23 * day, 7],
    ['a day', held(), 29 * day, 1],
    ['an expired lease', held(), 30 * day, null],
    ['a lease that is given back', held({ wanted: 'ended' }), 29 * day, null],
    ['a notice', held({ document: notice('disabled') }), 29 * day, null],
    [
      'a lease of minutes',
      held({ document: { ...lease, refreshAt: 60_000, expiresAt: 2 * 3_700_000 } }),
      7_000_000,
      null,
    ],
  ])('%s', (_, of, now, days) => {
    expect(warningOf(of, now)).toBe(days);
  });
});
