import { expect, test } from 'vitest';
import { simulate } from './simulation.ts';
import { sabotages } from './sabotage.ts';

const seeds = 150;
const steps = 200;

for (const [name, isAimed] of [
  ['drawn', false],
  ['aimed', true],
] as const) {
  test(
    `the sync promise holds over ${seeds} ${name} seeds of ${steps} steps each`,
    { timeout: 900_000 },
    async () => {
      const violations: string[] = [];
      for (let seed = 1; seed <= seeds; seed += 1) {
        const violation = await simulate({ seed, steps, isAimed });
        if (violation !== null) violations.push(`seed ${seed}: ${violation}`);
      }
      const replay = `npm run simulate -- ${isAimed ? '--aimed ' : ''}--from SEED --seeds 1`;
      expect(violations, `replay with: ${replay}`).toEqual([]);
    },
  );
}

test('a seed replays exactly', async () => {
  const sabotage = sabotages['the reconcile delay removed'];
  const first = await simulate({ seed: 2, steps, sabotage });
  expect(first).not.toBeNull();
  expect(await simulate({ seed: 2, steps, sabotage })).toBe(first);
});
