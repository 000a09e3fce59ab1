import { describe, expect, it } from 'vitest';
import { isOutage, type NotAppliedReason, type Outcome } from '../../src/domain/outcome.ts';

type Case = NotAppliedReason | 'applied' | 'ambiguous';

const outages: Record<Case, boolean> = {
  applied: false,
  ambiguous: true,
  unreachable: true,
  refused: false,
  missing: false,
  unauthorized: false,
  throttled: false,
  rejected: false,
};

function outcomeOf(name: Case): Outcome<null> {
  if (name === 'applied') return { outcome: 'applied', value: null, confirmedAt: 1 };
  if (name === 'ambiguous') return { outcome: 'ambiguous', detail: 'lost', retryAfterMs: null };
  return { outcome: 'not_applied', reason: name, status: null, detail: 'no', retryAfterMs: null };
}

describe('an outage', () => {
  it.each(Object.keys(outages) as Case[])('is told from a refusal: %s', (name) => {
    expect(isOutage(outcomeOf(name))).toBe(outages[name]);
  });
});
