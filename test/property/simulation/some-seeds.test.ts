import { expect, test } from 'vitest';
import { simulate } from './simulation.ts';

// `npm run test:all` plays 300 seeds (simulation.test.ts).
test('the sync promise holds over 15 drawn and 15 aimed seeds', async () => {
  for (let seed = 1; seed <= 15; seed += 1) {
    for (const isAimed of [false, true]) {
      expect(await simulate({ seed, steps: 200, isAimed }), `seed ${seed}, aimed: ${isAimed}`).toBeNull();
    }
  }
});
