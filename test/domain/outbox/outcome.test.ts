import { describe, expect, it } from 'vitest';
import {
  isResponse,
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
    expect(isResponse(outcomeOf('applied'))).toBe(true);
    expect(isResponse({ ...refused, status: 404 } as Outcome<null>)).toBe(true);
  });

  it('is none when nothing was sent, when it was lost, or when a cache or a firewall gave it', () => {
    expect(isResponse(refused)).toBe(false);
    expect(isResponse(outcomeOf('ambiguous'))).toBe(false);
    expect(isResponse({ ...outcomeOf('ambiguous'), status: 502 } as Outcome<null>)).toBe(false);
    expect(isResponse({ ...outcomeOf('applied'), isCached: true } as Outcome<null>)).toBe(false);
    expect(isResponse({ ...outcomeOf('cached'), status: 404 } as Outcome<null>)).toBe(false);
    expect(isResponse({ ...outcomeOf('challenged'), status: 403 } as Outcome<null>)).toBe(false);
  });
});
