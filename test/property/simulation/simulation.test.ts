import { expect, test } from 'vitest';
import { simulate } from './simulation.ts';

const seeds = 200;
const steps = 200;

test(
  `the sync promise holds over ${seeds} seeds of ${steps} operations each`,
  { timeout: 240_000 },
  async () => {
    const violations: string[] = [];
    for (let seed = 1; seed <= seeds; seed += 1) {
      const violation = await simulate({ seed, steps });
      if (violation !== null) violations.push(`seed ${seed}: ${violation}`);
    }
    expect(violations, 'replay with: npm run simulate -- --from SEED --seeds 1').toEqual([]);
  },
);

test('a seed replays exactly', async () => {
  const mutation = 'no_fence';
  const first = await simulate({ seed: 1, steps, mutation });
  expect(first).not.toBeNull();
  expect(await simulate({ seed: 1, steps, mutation })).toBe(first);
});
