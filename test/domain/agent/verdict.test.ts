import { describe, expect, it } from 'vitest';
import { freshnessAt } from '../../../src/domain/agent/freshness.ts';
import { verdict, type Verdict } from '../../../src/domain/agent/verdict.ts';

const policy = { freshMs: 24, staleMs: 168, graceMs: 336 };
const confirmedAt = 10_000;

type Age = 'fresh' | 'stale' | 'grace' | 'expired';
type Provenance = 'enabled' | 'disabled' | 'gone';

/** The last ms of each age, and the first of the last. */
const ages: Record<Age, number> = { fresh: 24, stale: 168, grace: 336, expired: 337 };

const answer = (freshness: Age): Verdict => ({ verdict: 'answer', freshness });
const gone: Verdict = { verdict: 'gone' };

const table: Record<Provenance, Record<Age, Verdict>> = {
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

const cells = Object.entries(table).flatMap(([standing, row]) =>
  Object.entries(row).map(([age, expected]) => ({
    standing: standing as Provenance,
    age: age as Age,
    expected,
  })),
);

describe('the verdict about a key', () => {
  it.each(cells)('that is $standing, at the end of $age, is $expected', ({ standing, age, expected }) => {
    const local = { uses: 0, enabled: standing !== 'disabled', pending: 0 };
    const snapshot = { confirmedAt, gone: standing === 'gone', local };
    expect(verdict(snapshot, policy, confirmedAt + ages[age])).toEqual(expected);
  });

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
