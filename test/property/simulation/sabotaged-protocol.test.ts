import { expect, test } from 'vitest';
import { simulateLatchkey } from './latchkey/play.ts';
import { latchkeySabotages } from './latchkey/sabotage.ts';
import { simulate } from './simulation.ts';
import { sabotages, type SabotageName } from './sabotage.ts';
import type { TroubleName } from './world.ts';

const seeds = 200;
const steps = 200;

/** The trouble that shows each way to corrupt the protocol, and the promise that it breaks. */
const broken: Readonly<Record<SabotageName, [TroubleName[], RegExp]>> = {
  'the reconcile delay removed': [[], /the reconcile delay|invariant [24]/],
  'a reconcile delay that is a second short': [[], /the reconcile delay|invariant [24]/],
  'a blind retry': [[], /the reconcile delay|invariant 2/],
  'the in-flight mark written after sending': [[], /the reconcile delay|invariant [124]/],
  'reads outside the queue': [[], /invariant [23]|shows/],
  'other writers not reckoned with': [['others'], /invariant 2/],
  'a person who overrides the reconcile delay': [['people'], /the reconcile delay|invariant|shows/],
  'a restore that doubts nothing': [['restore'], /the reconcile delay|invariant 2/],
  'a copy taken for the original': [['copy'], /the reconcile delay|invariant 2/],
  'a refusal taken for a delivery': [['refusals'], /invariant 2.* never arrived/],
  'an answer lost to a full disk': [['full'], /did not hold within|the reconcile delay|invariant/],
  'the age of an answer not looked at': [['cache'], /invariant/],
  'stored dates that stay when the time goes back': [['dates'], /invariant 5/],
  'Retry-After not heard': [['patience'], /Retry-After/],
  'one secret for all products': [
    ['products'],
    /did not hold within|is answered 404, and the upstream knows it/,
  ],
  'an unknown history that is not waited for': [['restore'], /the reconcile delay|invariant/],
  'a lost disable taken for one that was never sent': [
    ['refusals'],
    /invariant 2.* disable .*it was applied/,
  ],
  'a coupon sent again unseen': [['people'], /created more than once/],
  'a count taken for known after a decision': [['people'], /other writers|invariant 2/],
  'products that are not remembered': [['renames'], /products: .*(404|belongs to)/],
  'next_at kept after the return of the upstream': [[], /did not hold within/],
};

for (const [name, { sabotage, troubles, breaks }] of Object.entries(latchkeySabotages)) {
  test(
    `between Latchkeys the simulation finds ${name} within ${seeds} seeds`,
    { timeout: 600_000 },
    async () => {
      let violation: string | null = null;
      for (let seed = 1; seed <= seeds && violation === null; seed += 1) {
        violation = await simulateLatchkey({ seed, steps: 100, sabotage, troubles });
      }
      expect(violation).toMatch(breaks);
    },
  );
}

for (const [name, [troubles, pattern]] of Object.entries(broken)) {
  test(`the simulation finds ${name} within ${seeds} seeds`, { timeout: 600_000 }, async () => {
    const sabotage = sabotages[name as SabotageName];
    let violation: string | null = null;
    for (let seed = 1; seed <= seeds && violation === null; seed += 1) {
      violation = await simulate({ seed, steps, sabotage, troubles });
    }
    expect(violation).toMatch(pattern);
  });
}
