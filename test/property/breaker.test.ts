import { array, assert, constantFrom, double, integer, nat, property, record, tuple } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffMs } from '../../src/domain/backoff.ts';
import { closedBreaker, nextBreaker, type BreakerEvent } from '../../src/domain/breaker.ts';

const step = tuple(constantFrom<BreakerEvent['type']>('success', 'failure', 'probe'), nat(50));
const policy = record({ failures: integer({ min: 1, max: 5 }), openMs: nat(100) });

describe('a breaker, whatever happens', () => {
  it('lets one probe through and no second one before its outcome', () => {
    assert(
      property(policy, array(step, { maxLength: 60 }), (how, steps) => {
        let breaker = closedBreaker;
        let at = 0;
        let openedAt = 0;
        for (const [type, passed] of steps) {
          at += passed;
          const before = breaker;
          breaker = nextBreaker(breaker, type === 'success' ? { type } : { type, at }, how);
          const wasLetThrough = breaker.state === 'half_open' && before.state !== 'half_open';
          const mayBeLetThrough = before.state === 'open' && type === 'probe' && at >= openedAt + how.openMs;
          expect(wasLetThrough).toBe(mayBeLetThrough);
          if (breaker.state === 'open' && before.state !== 'open') openedAt = at;
        }
      }),
    );
  });

  it('is open after so many failures in a row, and closed after any success', () => {
    assert(
      property(policy, array(step, { maxLength: 30 }), (how, steps) => {
        let breaker = closedBreaker;
        let inARow = 0;
        for (const [type, at] of steps) {
          breaker = nextBreaker(breaker, type === 'success' ? { type } : { type, at }, how);
          if (type === 'success') inARow = 0;
          if (type === 'failure') inARow += 1;
          expect(breaker.state === 'closed').toBe(inARow < how.failures);
        }
      }),
    );
  });
});

describe('the wait after failures', () => {
  const draw = double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const waits = record({
    firstMs: integer({ min: 1, max: 10_000 }),
    maxMs: integer({ min: 1, max: 1_000_000 }),
  });

  it('is a whole number of ms, at least one, at most the cap and what the failures allow', () => {
    assert(
      property(waits, integer({ min: 0, max: 5000 }), draw, (how, failures, drawn) => {
        const waitMs = backoffMs(how, failures, drawn);
        expect(Number.isInteger(waitMs)).toBe(true);
        expect(waitMs).toBeGreaterThanOrEqual(1);
        expect(waitMs).toBeLessThanOrEqual(how.maxMs);
        expect(waitMs).toBeLessThanOrEqual(how.firstMs * 2 ** Math.max(0, failures - 1));
      }),
    );
  });

  it('never falls with more failures, for the same draw', () => {
    assert(
      property(waits, integer({ min: 1, max: 100 }), draw, (how, failures, drawn) => {
        expect(backoffMs(how, failures + 1, drawn)).toBeGreaterThanOrEqual(backoffMs(how, failures, drawn));
      }),
    );
  });
});
