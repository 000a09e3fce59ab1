import { expect, test } from 'vitest';
import { playSeeds } from './play-seeds.ts';
import { sabotages } from './sabotage.ts';
import { simulate } from './simulation.ts';

const seeds = 80;
const steps = 200;

test(
  `the sync promise holds over ${seeds} drawn seeds of ${steps} steps each`,
  { timeout: 900_000 },
  async () => {
    expect(await playSeeds({ from: 1, seeds, steps, isAimed: false })).toEqual([]);
  },
);

test(
  `the sync promise holds at Gumroad over ${seeds} drawn seeds of ${steps} steps each`,
  { timeout: 900_000 },
  async () => {
    expect(await playSeeds({ from: 1, seeds, steps, isAimed: false, isGumroad: true })).toEqual([]);
  },
);

test('a seed replays exactly', async () => {
  const sabotage = sabotages['the reconcile delay removed'];
  const first = await simulate({ seed: 2, steps, sabotage });
  expect(first).not.toBeNull();
  expect(await simulate({ seed: 2, steps, sabotage })).toBe(first);
});
