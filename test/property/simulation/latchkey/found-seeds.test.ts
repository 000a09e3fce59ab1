import { expect, test } from 'vitest';
import { simulateLatchkey } from './play.ts';
import type { LatchkeyTroubleName } from './world.ts';

/** Seeds that have found a fault, with as few steps as it needs, and the promise that the fault broke. */
const found: readonly [string, { seed: number; steps: number; troubles: LatchkeyTroubleName[] }][] = [
  [
    'an agent with a new identity numbers its pushes from 1, and takes no delivered change for one of them',
    { seed: 4, steps: 100, troubles: ['rollback'] },
  ],
];

test.each(found)('%s', async (_, simulation) => {
  expect(await simulateLatchkey(simulation)).toBeNull();
});
