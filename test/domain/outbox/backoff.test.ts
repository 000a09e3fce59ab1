import { describe, expect, it } from 'vitest';
import { backoffMs } from '../../../src/domain/outbox/backoff.ts';

const policy = { firstMs: 1000, maxMs: 60_000 };
const last = 1 - 2 ** -53;

describe('the wait after failures', () => {
  it('may be as long as twice the one before, up to the cap', () => {
    const longest = [1, 2, 3, 6, 7, 50].map((failures) => backoffMs(policy, failures, last));
    expect(longest).toEqual([1000, 2000, 4000, 32_000, 60_000, 60_000]);
  });

  it('is drawn anew from all of that, also beyond the cap', () => {
    expect([1, 3, 50].map((failures) => backoffMs(policy, failures, 0.25))).toEqual([250, 1000, 15_000]);
  });

  it('is never none at all', () => {
    expect(backoffMs(policy, 1, 0)).toBe(1);
  });

  it('stays a number after any number of failures', () => {
    expect(backoffMs(policy, 1e9, last)).toBe(60_000);
    expect(backoffMs(policy, 0, last)).toBe(1000);
  });
});
