import { expect, test } from 'vitest';
import { simulatedStoreNames } from './stores.ts';
import { playSeeds } from './play-seeds.ts';
import { sabotages } from './sabotage.ts';
import { simulate } from './simulation.ts';

const seeds = 40;
const steps = 200;

test(
  `the sync promise holds over ${seeds} drawn seeds of ${steps} steps each`,
  { timeout: 900_000 },
  async () => {
    expect(await playSeeds({ from: 1, seeds, steps, isAimed: false })).toEqual([]);
  },
);

test.each(simulatedStoreNames)(
  `the sync promise holds at %s over ${seeds} drawn seeds of ${steps} steps each`,
  { timeout: 900_000 },
  async (store) => {
    expect(await playSeeds({ from: 1, seeds, steps, isAimed: false, store })).toEqual([]);
  },
);

test('a seed replays exactly', async () => {
  const sabotage = sabotages['the reconcile delay removed'];
  const first = await simulate({ seed: 2, steps, sabotage });
  expect(first).not.toBeNull();
  expect(await simulate({ seed: 2, steps, sabotage })).toBe(first);
});
