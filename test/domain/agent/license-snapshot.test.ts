import { describe, expect, it } from 'vitest';
import type { License } from '../../../src/domain/license.ts';
import {
  localLicense,
  localState,
  nextRefreshAt,
  refreshAtAfterChange,
  observeMissing,
  type LocalState,
  type LicenseSnapshot,
  freshnessAt,
  mayBeRenewed,
  validWithoutUpstreamUntil,
  verdict,
  type Verdict,
} from '../../../src/domain/agent/license-snapshot.ts';
import type {
  LicenseOperationKind,
  Operation,
  OperationProgress,
  OperationState,
} from '../../../src/domain/outbox/operation.ts';
import { buildOperation } from '../../support/builders/operation-builders.ts';

const license: License = {
  licenseKey: 'KEY',
  productKey: 'press',
  buyerEmail: 'a@example.com',
  uses: 3,
  enabled: true,
  createdAt: 1,
};

function operation(kind: LicenseOperationKind, progress: OperationProgress): Operation {
  return buildOperation({ kind, subject: 'KEY', progress });
}

type Provenance = OperationState | 'held';
const standings: Record<Provenance, OperationProgress> = {
  pending: { state: 'pending', maybeApplied: false, unanswered: false },
  in_flight: { state: 'in_flight', maybeApplied: false, unanswered: false, baseUses: 3, sentAt: 1 },
  uncertain: { state: 'uncertain', maybeApplied: false, baseUses: 3, held: false },
  held: { state: 'uncertain', maybeApplied: false, baseUses: 3, held: true },
  delivered: { state: 'delivered', finishedAt: 1 },
  inferred: { state: 'inferred', finishedAt: 1 },
  conflicted: { state: 'conflicted' },
  dead: { state: 'dead', cause: 'refused' },
  cancelled: { state: 'cancelled', finishedAt: 1 },
  dropped: { state: 'dropped', finishedAt: 1 },
};

const untouched: LocalState = { uses: 3, enabled: true, pending: 0 };
const used: LocalState = { uses: 4, enabled: true, pending: 1 };
const taken: LocalState = { uses: 2, enabled: true, pending: 1 };
const refused: LocalState = { uses: 3, enabled: false, pending: 0 };
const disabling: LocalState = { uses: 3, enabled: false, pending: 1 };
const waiting: LocalState = { uses: 3, enabled: true, pending: 1 };

/** What callers see of a key with 3 uses and one operation. */
const table: Record<Provenance, Record<LicenseOperationKind, LocalState>> = {
  pending: { usage: used, decrease: taken, disable: disabling, enable: waiting },
  in_flight: { usage: used, decrease: taken, disable: disabling, enable: waiting },
  uncertain: { usage: used, decrease: taken, disable: disabling, enable: waiting },
  held: { usage: waiting, decrease: waiting, disable: disabling, enable: waiting },
  delivered: { usage: untouched, decrease: untouched, disable: untouched, enable: untouched },
  inferred: { usage: untouched, decrease: untouched, disable: untouched, enable: untouched },
  conflicted: { usage: untouched, decrease: untouched, disable: refused, enable: untouched },
  dead: { usage: untouched, decrease: untouched, disable: refused, enable: untouched },
  cancelled: { usage: untouched, decrease: untouched, disable: untouched, enable: untouched },
  dropped: { usage: untouched, decrease: untouched, disable: untouched, enable: untouched },
};

const cells = Object.entries(table).flatMap(([standing, row]) =>
  Object.entries(row).map(([kind, local]) => ({
    standing: standing as Provenance,
    kind: kind as LicenseOperationKind,
    local,
  })),
);

describe('what callers see of a key', () => {
  it.each(cells)('with a $kind that is $standing is $local', ({ standing, kind, local }) => {
    expect(localState(license, [operation(kind, standings[standing])])).toEqual(local);
  });

  it('is what the upstream last said when nothing waits', () => {
    expect(localState(license, [])).toEqual(untouched);
  });

  it('never has fewer than 0 uses, step by step', () => {
    const { pending } = standings;
    const operations = [operation('decrease', pending), operation('usage', pending)];
    expect(localState({ ...license, uses: 0 }, operations).uses).toBe(1);
    expect(localState({ ...license, uses: -4 }, [operation('usage', pending)]).uses).toBe(1);
  });

  it('never shows an enable that waits', () => {
    const disabled = { ...license, enabled: false };
    expect(localState(disabled, [operation('enable', standings.in_flight)]).enabled).toBe(false);
  });

  it('has the members that local changes move from here, the others from the upstream', () => {
    const local = { uses: 9, enabled: false, pending: 2 };
    expect(localLicense({ license, local })).toEqual({ ...license, uses: 9, enabled: false });
  });
});

describe('a key that the upstream does not know', () => {
  const snapshot: LicenseSnapshot = {
    license,
    local: untouched,
    productId: 'press',
    confirmedAt: 1,
    run: 1,
    manyWriters: false,
    missingSince: null,
    gone: false,
    readFirst: false,
    askedAt: 1,
    refreshAt: null,
  };

  it('is gone once it has said so twice, far enough apart', () => {
    const once = observeMissing(snapshot, 1000, 60);
    expect(once).toEqual({ ...snapshot, missingSince: 1000, gone: false });
    expect(observeMissing(once, 1059, 60).gone).toBe(false);
    expect(observeMissing(once, 1060, 60)).toEqual({ ...snapshot, missingSince: 1000, gone: true });
  });

  it('stays gone until an answer says otherwise', () => {
    const gone = { ...snapshot, missingSince: 1000, gone: true };
    expect(observeMissing(gone, 1001, 60).gone).toBe(true);
  });
});

describe('the refresh of a key', () => {
  const policy = { refreshMs: 1000, graceMs: 5000, goneMs: 3000 };
  const at = { now: 10_000, monotonic: 500, fraction: 0.5, readResult: 'known' } as const;

  it('comes a refresh time after its snapshot, a fifth sooner or later', () => {
    const asked = { askedAt: 10_000 };
    expect(nextRefreshAt(asked, policy, at)).toBe(1500);
    expect(nextRefreshAt(asked, policy, { ...at, fraction: 0 })).toBe(1300);
    expect(nextRefreshAt(asked, policy, { ...at, fraction: 1 })).toBe(1700);
  });

  it('comes sooner again when the read brought nothing', () => {
    expect(nextRefreshAt({ askedAt: 10_000 }, policy, { ...at, readResult: 'unanswered' })).toBe(600);
  });

  it('comes rarely, but comes, when the key is gone', () => {
    expect(nextRefreshAt({ askedAt: 10_000 }, policy, { ...at, readResult: 'gone' })).toBe(3500);
  });

  it('comes no more when nobody has asked for it within grace', () => {
    expect(nextRefreshAt({ askedAt: 5000 }, policy, at)).toBe(1500);
    expect(nextRefreshAt({ askedAt: 4999 }, policy, at)).toBeNull();
  });

  it('stays as it was planned after a change, where that is neither too soon nor too late', () => {
    const planned = (refreshAt: number | null) => ({ askedAt: 10_000, refreshAt });
    for (const refreshAt of [1300, 1650, 1700]) {
      expect(refreshAtAfterChange(planned(refreshAt), policy, at)).toBe(refreshAt);
    }
    for (const refreshAt of [1299, 1701, null]) {
      expect(refreshAtAfterChange(planned(refreshAt), policy, at)).toBe(1500);
    }
    expect(refreshAtAfterChange({ askedAt: 4999, refreshAt: 1500 }, policy, at)).toBeNull();
  });
});

const policy = { freshMs: 24, staleMs: 168, graceMs: 336, expiryGraceMs: 48 };
const confirmedAt = 10_000;

type Age = 'fresh' | 'stale' | 'grace' | 'expired';
type Standing = 'enabled' | 'disabled' | 'gone';

/** The last ms of each age, and the first of the last. */
const ages: Record<Age, number> = { fresh: 24, stale: 168, grace: 336, expired: 337 };

const answer = (freshness: Age): Verdict => ({ verdict: 'answer', freshness, asksFirst: false });
const gone: Verdict = { verdict: 'gone' };

const verdicts: Record<Standing, Record<Age, Verdict>> = {
  enabled: {
    fresh: answer('fresh'),
    stale: answer('stale'),
    grace: answer('grace'),
    expired: { verdict: 'expired' },
  },
  disabled: {
    fresh: answer('fresh'),
    stale: answer('stale'),
    grace: answer('grace'),
    expired: answer('expired'),
  },
  gone: { fresh: gone, stale: gone, grace: gone, expired: gone },
};

const verdictCells = Object.entries(verdicts).flatMap(([standing, row]) =>
  Object.entries(row).map(([age, expected]) => ({
    standing: standing as Standing,
    age: age as Age,
    expected,
  })),
);

describe('the verdict about a key', () => {
  it.each(verdictCells)(
    'that is $standing, at the end of $age, is $expected',
    ({ standing, age, expected }) => {
      const local = { uses: 0, enabled: standing !== 'disabled', pending: 0 };
      const snapshot = { license: license, confirmedAt, gone: standing === 'gone', local };
      expect(verdict(snapshot, policy, confirmedAt + ages[age])).toEqual(expected);
    },
  );

  it('that was never observed is unknown', () => {
    expect(verdict(null, policy, confirmedAt)).toEqual({ verdict: 'unknown' });
  });

  it('goes from one age to the next with the first ms beyond', () => {
    const after = Object.values(ages).map((age) => freshnessAt(confirmedAt, policy, confirmedAt + age + 1));
    expect(after).toEqual(['stale', 'grace', 'expired', 'expired']);
  });

  it('of an answer that is dated ahead is fresh', () => {
    expect(freshnessAt(confirmedAt, policy, confirmedAt - 5)).toBe('fresh');
  });
});

describe('a license that ends, at an agent', () => {
  const end = confirmedAt + 100;
  const snapshot = (terms: Pick<License, 'expiresAt' | 'graceUntil'>, at = confirmedAt) => ({
    license: { ...license, ...terms },
    confirmedAt: at,
  });

  it.each([
    ['that has no end is valid for freshness.grace', snapshot({}), confirmedAt + 336],
    ['ends after freshness.grace: valid no longer', snapshot({ expiresAt: end + 900 }), confirmedAt + 336],
    ['ends sooner: valid for freshness.expiry_grace more', snapshot({ expiresAt: end }), end + 48],
    ['has a longer grace', snapshot({ expiresAt: end, graceUntil: end + 60 }), end + 60],
    ['has a shorter grace', snapshot({ expiresAt: end, graceUntil: end + 5 }), end + 48],
    [
      'was confirmed in its grace: freshness.expiry_grace counts from the end of the grace',
      snapshot({ expiresAt: end, graceUntil: end + 60 }, end + 1),
      end + 108,
    ],
    ['was confirmed after its end', snapshot({ expiresAt: end }, end + 1), end],
    ['was confirmed after its grace', snapshot({ expiresAt: end, graceUntil: end + 60 }, end + 61), end + 60],
  ])('and %s, is valid without the upstream until then', (_, known, until) => {
    expect(validWithoutUpstreamUntil(known, policy)).toBe(until);
  });

  it('may be renewed after its end, unless the upstream has confirmed it since: also in the second of the end', () => {
    const after = (at: number): boolean => mayBeRenewed(snapshot({ expiresAt: end }, at), end + 1);
    expect([end - 1, end, end + 1].map(after)).toEqual([true, false, false]);
  });

  it('and that is disabled here is answered without asking whether it was renewed', () => {
    const known = { ...snapshot({ expiresAt: end }), gone: false };
    const local = { uses: 0, enabled: false, pending: 1 };
    expect(verdict({ ...known, local }, policy, end + 1)).toMatchObject({ asksFirst: false });
    expect(verdict({ ...known, local: { ...local, enabled: true } }, policy, end + 1)).toMatchObject({
      asksFirst: true,
    });
  });
});
