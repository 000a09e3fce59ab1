import { expect, test } from 'vitest';
import { simulateLatchkey } from './play.ts';
import type { LatchkeyTroubleName } from './world.ts';

/** Seeds that have found a fault, and the promise that the fault broke. */
const found: readonly [string, { seed: number; steps: number; troubles: LatchkeyTroubleName[] }][] = [
  [
    'a disable does not overtake the enable that a restored authority has lost',
    {
      seed: 17,
      steps: 80,
      troubles: ['chain', 'authority_restore', 'agent_restore', 'lost_state', 'coupons'],
    },
  ],
  [
    'a use that is in flight while another store takes the place of the upstream counts once',
    {
      seed: 109,
      steps: 80,
      troubles: ['others', 'another_store', 'lost_state', 'secrets', 'month', 'person'],
    },
  ],
  [
    'what an agent in the middle has lost with its state directory is sent again',
    { seed: 98, steps: 80, troubles: ['chain', 'seller', 'lost_state', 'person', 'full', 'coupons'] },
  ],
  [
    'a void does not overtake the redemption that an agent in the middle has lost',
    {
      seed: 316,
      steps: 60,
      troubles: ['chain', 'authority_restore', 'lost_state', 'secrets', 'person', 'coupons'],
    },
  ],
  [
    'a void is sent if an agent in the middle may have sent the redemption before it lost its state directory',
    {
      seed: 1_267,
      steps: 60,
      troubles: ['chain', 'seller', 'authority_restart', 'lost_state', 'coupons'],
    },
  ],
  [
    'a redemption that was known already does not count again when it is sent again',
    {
      seed: 1_210,
      steps: 60,
      troubles: ['chain', 'seller', 'lost_state', 'clocks', 'person', 'coupons'],
    },
  ],
  [
    'a redemption that was voided is not sent again without its void',
    { seed: 31_114, steps: 60, troubles: ['chain', 'coupons', 'lost_state'] },
  ],
  [
    'a creation that waits behind one that conflicts is sent',
    { seed: 20_323, steps: 50, troubles: ['lost_state', 'copy', 'person', 'coupons'] },
  ],
  [
    'a void of an unknown order that arrives late voids no later redemption',
    {
      seed: 1_080,
      steps: 60,
      troubles: ['chain', 'seller', 'late', 'lost_state', 'stranger', 'person', 'coupons'],
    },
  ],
  [
    'a redemption that a restored agent sends after the answer to its void does not count',
    {
      seed: 111_517,
      steps: 50,
      troubles: [
        'chain',
        'gateway',
        'authority_restart',
        'authority_restore',
        'agent_restore',
        'clocks',
        'coupons',
      ],
    },
  ],
  [
    'an agent below sees what has changed since an agent in the middle was put back, also if as much was lost',
    { seed: 100_763, steps: 50, troubles: ['chain', 'rollback'] },
  ],
  [
    'an enable at a copied agent overrides the disable that was copied with it',
    { seed: 101_038, steps: 50, troubles: ['seller', 'authority_restart', 'copy', 'stranger'] },
  ],
  [
    'an agent below keeps the coupons and redemptions that the agent in the middle holds for a person',
    {
      seed: 102_083,
      steps: 50,
      troubles: ['chain', 'authority_restart', 'another_store', 'copy', 'coupons'],
    },
  ],
  [
    'what an agent in the middle has lost may be unseen if the agent below was put back, too',
    { seed: 100_768, steps: 50, troubles: ['chain', 'rollback'] },
  ],
];

test.each(found)('%s', { timeout: 60_000 }, async (_, simulation) => {
  expect(await simulateLatchkey(simulation)).toBeNull();
});
