import { expect, test } from 'vitest';
import { simulate } from './simulation.ts';
import { spoilings, type SpoilingName } from './spoiling.ts';

const seeds = 200;
const steps = 200;

/** The promise that each way to spoil the protocol breaks. */
const broken: Readonly<Record<SpoilingName, RegExp>> = {
  'the fence removed': /the fence|invariant [24]/,
  'a fence that is a second short': /the fence|invariant [24]/,
  'a blind retry': /the fence|invariant 2/,
  'the in-flight mark written after sending': /the fence|invariant 2|created twice/,
  'reads outside the lane': /invariant [23]|shows/,
  "next_at kept after the upstream's return": /not come about within/,
};

for (const [name, pattern] of Object.entries(broken)) {
  test(`the simulation finds ${name} within ${seeds} seeds`, { timeout: 240_000 }, async () => {
    const spoiling = spoilings[name as SpoilingName];
    let violation: string | null = null;
    for (let seed = 1; seed <= seeds && violation === null; seed += 1) {
      violation = await simulate({ seed, steps, spoiling });
    }
    expect(violation).toMatch(pattern);
  });
}
