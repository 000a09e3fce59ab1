import { describe, expect, it } from 'vitest';
import {
  breakerTransitions,
  closedBreaker,
  nextBreaker,
  type Breaker,
  type BreakerEvent,
} from '../../../src/domain/outbox/outcome.ts';

const policy = { failures: 3, openMs: 100 };
const at = 1000;

type Given = 'closed' | 'about to open' | 'open' | 'due' | 'half open' | 'half open for too long';
type Happening =
  | 'an answer'
  | 'no answer'
  | 'a failure about the key that failed before'
  | 'a failure about another key'
  | 'a probe'
  | 'a sleep of the machine';

const given: Record<Given, Breaker> = {
  closed: closedBreaker,
  'about to open': { state: 'closed', failures: 2, lastFailed: 'BAD' },
  open: { state: 'open', probeAt: at + 1 },
  due: { state: 'open', probeAt: at },
  'half open': { state: 'half_open', probeAt: at + 1 },
  'half open for too long': { state: 'half_open', probeAt: at },
};

const events: Record<Happening, BreakerEvent> = {
  'an answer': { type: 'success' },
  'no answer': { type: 'failure', at, subject: null },
  'a failure about the key that failed before': { type: 'failure', at, subject: 'BAD' },
  'a failure about another key': { type: 'failure', at, subject: 'OTHER' },
  'a probe': { type: 'probe', at },
  'a sleep of the machine': { type: 'expire', at },
};

const opened: Breaker = { state: 'open', probeAt: at + policy.openMs };
const dueNow: Breaker = { state: 'open', probeAt: at };
const probed: Breaker = { state: 'half_open', probeAt: at + policy.openMs };
const failedOnce = (lastFailed: string | null): Breaker => ({ state: 'closed', failures: 1, lastFailed });

const table: Record<Given, Record<Happening, Breaker>> = {
  closed: {
    'an answer': closedBreaker,
    'no answer': failedOnce(null),
    'a failure about the key that failed before': failedOnce('BAD'),
    'a failure about another key': failedOnce('OTHER'),
    'a probe': closedBreaker,
    'a sleep of the machine': closedBreaker,
  },
  'about to open': {
    'an answer': closedBreaker,
    'no answer': opened,
    'a failure about the key that failed before': given['about to open'],
    'a failure about another key': dueNow,
    'a probe': given['about to open'],
    'a sleep of the machine': given['about to open'],
  },
  open: {
    'an answer': closedBreaker,
    'no answer': given.open,
    'a failure about the key that failed before': given.open,
    'a failure about another key': given.open,
    'a probe': given.open,
    'a sleep of the machine': dueNow,
  },
  due: {
    'an answer': closedBreaker,
    'no answer': given.due,
    'a failure about the key that failed before': given.due,
    'a failure about another key': given.due,
    'a probe': probed,
    'a sleep of the machine': dueNow,
  },
  'half open': {
    'an answer': closedBreaker,
    'no answer': opened,
    'a failure about the key that failed before': opened,
    'a failure about another key': opened,
    'a probe': given['half open'],
    'a sleep of the machine': dueNow,
  },
  'half open for too long': {
    'an answer': closedBreaker,
    'no answer': opened,
    'a failure about the key that failed before': opened,
    'a failure about another key': opened,
    'a probe': probed,
    'a sleep of the machine': dueNow,
  },
};

const cells = Object.entries(table).flatMap(([from, row]) =>
  Object.entries(row).map(([what, to]) => ({ from: from as Given, what: what as Happening, to })),
);

/** The breaker after failures about these subjects (null: nothing answered). */
function afterFailures(...subjects: (string | null)[]): Breaker {
  return subjects.reduce<Breaker>(
    (breaker, subject) => nextBreaker(breaker, { type: 'failure', at, subject }, policy),
    closedBreaker,
  );
}

describe('a breaker', () => {
  it.each(cells)('that is $from: $what leads to $to', ({ from, what, to }) => {
    expect(nextBreaker(given[from], events[what], policy)).toEqual(to);
  });

  it('has no other states and events than these', () => {
    const types = [...new Set(Object.values(events).map(({ type }) => type))];
    const shape = Object.entries(breakerTransitions).map(([state, row]) => [state, Object.keys(row)]);
    expect(shape).toEqual(['closed', 'open', 'half_open'].map((state) => [state, types]));
  });

  it('opens at the first failure when one is enough', () => {
    const strict = { failures: 1, openMs: 100 };
    expect(nextBreaker(closedBreaker, events['no answer'], strict)).toEqual(opened);
  });

  it('forgets failures at an answer: only those in a row count', () => {
    const answered = nextBreaker(given['about to open'], events['an answer'], policy);
    const again = nextBreaker(answered, events['a failure about the key that failed before'], policy);
    expect(again).toEqual(failedOnce('BAD'));
  });

  it('stays closed however often one key fails', () => {
    expect(afterFailures(...Array<string>(50).fill('BAD'))).toEqual(failedOnce('BAD'));
  });

  it('opens when several keys fail, in whatever order', () => {
    expect(afterFailures('A', 'B', 'A')).toEqual(dueNow);
    expect(afterFailures('A', 'A', 'B', 'B', 'C')).toEqual(dueNow);
  });

  it('opens when nothing answers, though it is all about one key', () => {
    expect(afterFailures(null, null, null)).toEqual(opened);
    expect(afterFailures('BAD', null, 'BAD', null)).toEqual(opened);
  });
});
