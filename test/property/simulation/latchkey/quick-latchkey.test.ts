import { expect, test } from 'vitest';
import { playLatchkeySeeds } from './play.ts';

// `npm test` plays these few seeds; `npm run test:all` plays 40 others.
const from = 1_001;
const seeds = 2;
const steps = 100;

test(`between Latchkeys the sync promise holds over ${seeds} seeds`, async () => {
  expect(await playLatchkeySeeds({ from, seeds, steps })).toEqual([]);
});
