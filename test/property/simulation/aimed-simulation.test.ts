import { expect, test } from 'vitest';
import { playSeeds } from './play-seeds.ts';

// This is a file of its own so that it runs on another core than the drawn seeds.
const seeds = 40;
const steps = 200;

test(
  `the sync promise holds over ${seeds} aimed seeds of ${steps} steps each`,
  { timeout: 900_000 },
  async () => {
    expect(await playSeeds({ from: 1, seeds, steps, isAimed: true })).toEqual([]);
  },
);
