import { expect, test } from 'vitest';
import { simulateActivations } from './play.ts';

// `npm test` plays these few seeds; `npm run simulate -- --store lemonsqueezy` plays as many as it is told.
const seeds = 20;

test(`the laws of activations hold at Lemon Squeezy over ${seeds} seeds`, { timeout: 120_000 }, async () => {
  const broken: string[] = [];
  for (let seed = 1; seed <= seeds; seed += 1) {
    const law = await simulateActivations({ seed, steps: 80 });
    if (law !== null)
      broken.push(`${law} (replay with: npm run simulate -- --store lemonsqueezy --from ${seed} --seeds 1)`);
  }
  expect(broken).toEqual([]);
});
