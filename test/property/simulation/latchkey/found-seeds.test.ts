import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { LatchkeyTroubleName } from './world.ts';

const main = fileURLToPath(new URL('../main.ts', import.meta.url));

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
    'a void is sent if an agent in the middle has learned of the coupon while the redemption was under way',
    { seed: 1_300_013, steps: 50, troubles: ['chain', 'coupons', 'seller', 'secrets', 'bursts'] },
  ],
  [
    'what an agent in the middle has lost may be unseen if the agent below was put back, too',
    { seed: 100_768, steps: 50, troubles: ['chain', 'rollback'] },
  ],
  [
    'a redemption that the authority refuses twice waits for a person at the agent in the middle, under its second id',
    { seed: 1_100_940, steps: 50, troubles: ['chain', 'seller', 'secrets', 'bursts', 'coupons'] },
  ],
  [
    'a void that an agent in the middle has lost, and gets again, voids there what was redeemed since',
    { seed: 1_600_004, steps: 50, troubles: ['chain', 'lost_state', 'coupons', 'authority_restore'] },
  ],
  [
    'redemptions below an agent in the middle go along with a coupon that a restored authority has given another id',
    { seed: 1_600_016, steps: 50, troubles: ['chain', 'lost_state', 'coupons', 'authority_restore'] },
  ],
];

// In a process of its own a seed plays as in `npm run simulate`: Vitest loads modules in other turns of the event loop.
test.each(found)('%s', (_, { seed, steps, troubles }) => {
  const numbers = ['--from', String(seed), '--seeds', '1', '--steps', String(steps)];
  const argv = [main, '--latchkey', '--troubles', troubles.join(','), ...numbers];
  const { stdout } = spawnSync(process.execPath, argv, { encoding: 'utf8' });
  expect(stdout).toBe(`1 of 1 seeds held, ${steps} operations each\n`);
});
