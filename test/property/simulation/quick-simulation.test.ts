import { expect, test } from 'vitest';
import { simulatedStoreNames } from './stores.ts';
import { playSeeds } from './play-seeds.ts';

// `npm test` plays these few seeds; `npm run test:all` plays hundreds of others.
const from = 1_001;
const seeds = 2;
const steps = 200;

test.each([
  ['drawn', false],
  ['aimed', true],
])(`the sync promise holds over ${seeds} %s seeds`, async (_, isAimed) => {
  expect(await playSeeds({ from, seeds, steps, isAimed })).toEqual([]);
});

test.each(
  simulatedStoreNames.flatMap((store) => [[store, 'drawn', false] as const, [store, 'aimed', true] as const]),
)(`the sync promise holds at %s over ${seeds} %s seeds`, async (store, _, isAimed) => {
  expect(await playSeeds({ from, seeds, steps, isAimed, store })).toEqual([]);
});
