import { describe, expect, it } from 'vitest';
import {
  isAnswer,
  isOutage,
  type NotAppliedReason,
  type Outcome,
} from '../../../src/domain/outbox/outcome.ts';

type Case = NotAppliedReason | 'applied' | 'ambiguous';

const outages: Record<Case, boolean> = {
  applied: false,
  ambiguous: true,
  unreachable: true,
  challenged: true,
  refused: false,
  missing: false,
  unauthorized: false,
  throttled: false,
  cached: false,
  rejected: false,
};

function outcomeOf(name: Case): Outcome<null> {
  if (name === 'applied') return { outcome: 'applied', value: null, confirmedAt: 1, isCached: false };
  if (name === 'ambiguous') return { outcome: 'ambiguous', status: null, detail: 'lost', retryAfterMs: null };
  return { outcome: 'not_applied', reason: name, status: null, detail: 'no', retryAfterMs: null };
}

describe('an outage', () => {
  it.each(Object.keys(outages) as Case[])('is told from a refusal: %s', (name) => {
    expect(isOutage(outcomeOf(name))).toBe(outages[name]);
  });
});

describe("the upstream's own answer", () => {
  const refused = outcomeOf('missing');

  it('is one that it gave just now, whatever it says', () => {
    expect(isAnswer(outcomeOf('applied'))).toBe(true);
    expect(isAnswer({ ...refused, status: 404 } as Outcome<null>)).toBe(true);
  });

  it('is none when nothing was sent, when it was lost, or when a cache or a firewall gave it', () => {
    expect(isAnswer(refused)).toBe(false);
    expect(isAnswer(outcomeOf('ambiguous'))).toBe(false);
    expect(isAnswer({ ...outcomeOf('ambiguous'), status: 502 } as Outcome<null>)).toBe(false);
    expect(isAnswer({ ...outcomeOf('applied'), isCached: true } as Outcome<null>)).toBe(false);
    expect(isAnswer({ ...outcomeOf('cached'), status: 404 } as Outcome<null>)).toBe(false);
    expect(isAnswer({ ...outcomeOf('challenged'), status: 403 } as Outcome<null>)).toBe(false);
  });
});
