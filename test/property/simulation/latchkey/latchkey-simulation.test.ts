import { expect, test } from 'vitest';
import { playLatchkeySeeds } from './play.ts';

// This is a file of its own so that it runs on another core than the seeds of the plain protocol.
const seeds = 40;
const steps = 100;

test(
  `between Latchkeys the sync promise holds over ${seeds} seeds of ${steps} steps each`,
  { timeout: 1_800_000 },
  async () => {
    expect(await playLatchkeySeeds({ from: 1, seeds, steps })).toEqual([]);
  },
);
