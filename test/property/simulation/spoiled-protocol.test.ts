import { expect, test } from 'vitest';
import type { Mutation } from './simulated-agent.ts';
import { simulate } from './simulation.ts';

const seeds = 200;
const steps = 200;

/** Ways to spoil the protocol, and the promise that each of them breaks. */
const spoiled: [spoiledBy: string, mutation: Mutation, broken: RegExp][] = [
  ['the fence removed', 'no_fence', /invariant [24]/],
  ['a blind retry', 'blind_retry', /invariant 2/],
  ['the in-flight mark written after sending', 'mark_after_sending', /invariant 2/],
  ['reads outside the lane', 'reads_outside_the_lane', /invariant [23]/],
  ["next_at kept after the upstream's return", 'waits_kept_after_the_outage', /not come about within/],
];

for (const [spoiledBy, mutation, broken] of spoiled) {
  test(`the simulation finds ${spoiledBy} within ${seeds} seeds`, { timeout: 240_000 }, async () => {
    let violation: string | null = null;
    for (let seed = 1; seed <= seeds && violation === null; seed += 1) {
      violation = await simulate({ seed, steps, mutation });
    }
    expect(violation).toMatch(broken);
  });
}
