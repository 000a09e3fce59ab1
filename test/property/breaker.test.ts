import {
  array,
  assert,
  constant,
  constantFrom,
  double,
  integer,
  nat,
  oneof,
  property,
  record,
  tuple,
  type Arbitrary,
} from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffMs } from '../../src/domain/outbox/delivery.ts';
import {
  closedBreaker,
  nextBreaker,
  type Breaker,
  type BreakerEvent,
} from '../../src/domain/outbox/outcome.ts';

const subject = constantFrom('A', 'B', 'C', null);
const event = (at: number): Arbitrary<BreakerEvent> =>
  oneof(
    constant<BreakerEvent>({ type: 'success' }),
    subject.map((about): BreakerEvent => ({ type: 'failure', at, subject: about })),
    constant<BreakerEvent>({ type: 'probe', at }),
    constant<BreakerEvent>({ type: 'expire', at }),
  );
/** Events in the order of their time; by itself an array is seldom longer than ten. */
const history = array(nat(50), { maxLength: 60, size: 'max' }).chain((gaps) => {
  let at = 0;
  return tuple(...gaps.map((gap) => event((at += gap))));
});
const policy = record({ failures: integer({ min: 1, max: 5 }), openMs: nat(100) });

describe('a breaker, after any events', () => {
  it('a breaker lets one probe through when it is due, and no second probe before the outcome or the same wait again', () => {
    assert(
      property(policy, history, (how, events) => {
        let breaker = closedBreaker;
        for (const happening of events) {
          const before = breaker;
          breaker = nextBreaker(breaker, happening, how);
          const wasLetThrough = breaker.state === 'half_open' && breaker !== before;
          const mayBeLetThrough =
            before.state !== 'closed' && happening.type === 'probe' && happening.at >= before.probeAt;
          expect(wasLetThrough).toBe(mayBeLetThrough);
          const nextAt = happening.type === 'probe' ? happening.at + how.openMs : null;
          expect(!wasLetThrough || (breaker.state === 'half_open' && breaker.probeAt === nextAt)).toBe(true);
        }
      }),
    );
  });

  it('a breaker is closed after any response, and never waits longer than its limit', () => {
    assert(
      property(policy, history, (how, events) => {
        let breaker = closedBreaker;
        for (const happening of events) {
          breaker = nextBreaker(breaker, happening, how);
          const waitsUntil = breaker.state === 'closed' ? -Infinity : breaker.probeAt;
          const longest = happening.type === 'success' ? -Infinity : happening.at + how.openMs;
          expect(waitsUntil).toBeLessThanOrEqual(longest);
        }
      }),
    );
  });

  it('a breaker opens after a number of failures in a row, where failures of one subject in a row count once', () => {
    assert(
      property(policy, array(subject, { maxLength: 20 }), (how, subjects) => {
        const breaker = subjects.reduce<Breaker>(
          (state, about, at) => nextBreaker(state, { type: 'failure', at, subject: about }, how),
          closedBreaker,
        );
        const answered = subjects.filter((about) => about !== null);
        const repeated = answered.filter((about, index) => about === answered[index - 1]);
        expect(breaker.state === 'closed').toBe(subjects.length - repeated.length < how.failures);
      }),
    );
  });
});

describe('the wait after failures', () => {
  const fraction = double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const waits = record({
    firstMs: integer({ min: 1, max: 10_000 }),
    maxMs: integer({ min: 1, max: 1_000_000 }),
  });

  it('a wait is a whole number of ms from 1 up to the cap and the limit for its failures', () => {
    assert(
      property(waits, integer({ min: 0, max: 5000 }), fraction, (how, failures, drawn) => {
        const waitMs = backoffMs(how, failures, drawn);
        expect(Number.isInteger(waitMs)).toBe(true);
        expect(waitMs).toBeGreaterThanOrEqual(1);
        expect(waitMs).toBeLessThanOrEqual(how.maxMs);
        expect(waitMs).toBeLessThanOrEqual(how.firstMs * 2 ** Math.max(0, failures - 1));
      }),
    );
  });

  it('a wait never gets shorter with more failures, for the same draw', () => {
    assert(
      property(waits, integer({ min: 1, max: 100 }), fraction, (how, failures, drawn) => {
        expect(backoffMs(how, failures + 1, drawn)).toBeGreaterThanOrEqual(backoffMs(how, failures, drawn));
      }),
    );
  });
});
