import { describe, expect, it } from 'vitest';
import {
  breakerTransitions,
  closedBreaker,
  nextBreaker,
  type Breaker,
  type BreakerEvent,
} from '../../src/domain/breaker.ts';

const policy = { failures: 3, openMs: 100 };
const at = 1000;

type Given = 'closed' | 'about to open' | 'open' | 'due' | 'half open';
type Event = BreakerEvent['type'];

const given: Record<Given, Breaker> = {
  closed: closedBreaker,
  'about to open': { state: 'closed', failures: 2 },
  open: { state: 'open', probeAt: at + 1 },
  due: { state: 'open', probeAt: at },
  'half open': { state: 'half_open' },
};

const events: Record<Event, BreakerEvent> = {
  success: { type: 'success' },
  failure: { type: 'failure', at },
  probe: { type: 'probe', at },
};

const opened: Breaker = { state: 'open', probeAt: at + policy.openMs };

const table: Record<Given, Record<Event, Breaker>> = {
  closed: { success: closedBreaker, failure: { state: 'closed', failures: 1 }, probe: given.closed },
  'about to open': { success: closedBreaker, failure: opened, probe: given['about to open'] },
  open: { success: closedBreaker, failure: given.open, probe: given.open },
  due: { success: closedBreaker, failure: given.due, probe: { state: 'half_open' } },
  'half open': { success: closedBreaker, failure: opened, probe: given['half open'] },
};

const cells = Object.entries(table).flatMap(([from, row]) =>
  Object.entries(row).map(([type, to]) => ({ from: from as Given, type: type as Event, to })),
);

describe('a breaker', () => {
  it.each(cells)('that is $from: $type leads to $to', ({ from, type, to }) => {
    expect(nextBreaker(given[from], events[type], policy)).toEqual(to);
  });

  it('has no other states and events than these', () => {
    const shape = Object.entries(breakerTransitions).map(([state, row]) => [state, Object.keys(row)]);
    expect(shape).toEqual(['closed', 'open', 'half_open'].map((state) => [state, Object.keys(events)]));
  });

  it('opens at the first failure when one is enough', () => {
    const strict = { failures: 1, openMs: 100 };
    expect(nextBreaker(closedBreaker, events.failure, strict)).toEqual(opened);
  });

  it('forgets failures at a success: only those in a row count', () => {
    const one = nextBreaker(given['about to open'], events.success, policy);
    expect(nextBreaker(one, events.failure, policy)).toEqual({ state: 'closed', failures: 1 });
  });
});
