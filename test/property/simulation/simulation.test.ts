import { expect, test } from 'vitest';
import { simulate } from './simulation.ts';
import { spoilings } from './spoiling.ts';

const seeds = 100;
const steps = 200;

test(`the sync promise holds over ${seeds} seeds of ${steps} steps each`, { timeout: 600_000 }, async () => {
  const violations: string[] = [];
  for (let seed = 1; seed <= seeds; seed += 1) {
    const violation = await simulate({ seed, steps });
    if (violation !== null) violations.push(`seed ${seed}: ${violation}`);
  }
  expect(violations, 'replay with: npm run simulate -- --from SEED --seeds 1').toEqual([]);
});

test('a seed replays exactly', async () => {
  const spoiling = spoilings['the fence removed'];
  const first = await simulate({ seed: 2, steps, spoiling });
  expect(first).not.toBeNull();
  expect(await simulate({ seed: 2, steps, spoiling })).toBe(first);
});
