import { expect, test } from 'vitest';
import { simulateLatchkey } from './play.ts';
import type { LatchkeyTroubleName } from './world.ts';

/** Seeds that have found a fault, with as few steps as it needs, and the promise that the fault broke. */
const found: readonly [string, { seed: number; steps: number; troubles: LatchkeyTroubleName[] }][] = [
  [
    'an agent with a new identity numbers its pushes from 1, and takes no delivered change for one of them',
    { seed: 4, steps: 100, troubles: ['rollback'] },
  ],
  [
    'what an agent with an earlier identity has delivered is sent again to a restored authority that has lost it',
    { seed: 19, steps: 100, troubles: ['seller', 'authority_restore', 'rollback', 'secrets', 'person'] },
  ],
  [
    'a change that a restored authority knew and that is sent again is shown once',
    { seed: 110, steps: 100, troubles: ['authority_restore', 'rollback', 'agent_restore', 'copy'] },
  ],
  [
    'a request that arrives late, and so ends what an agent follows, leaves no license unfollowed',
    {
      seed: 303,
      steps: 60,
      troubles: ['authority_restore', 'rollback', 'agent_restore', 'copy', 'others'],
    },
  ],
];

test.each(found)('%s', async (_, simulation) => {
  expect(await simulateLatchkey(simulation)).toBeNull();
});
