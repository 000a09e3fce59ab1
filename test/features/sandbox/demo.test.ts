import { expect, test } from 'vitest';
import { runDemo } from '../../../src/features/sandbox/demo.ts';
import { runStoreDemo } from '../../../src/features/sandbox/stores/demo.ts';

test('the demo ends with a lost answer, after which the store and the agent count the use once', async () => {
  const lines: string[] = [];
  expect([await runDemo((line) => lines.push(line)), lines.at(-1)]).toEqual([0, 'Every step succeeded.']);
  expect(lines).toHaveLength(11);
  expect(lines[8]).toMatch(/^9\. The store counted use 9, but its answer was lost/);
  expect(lines[9]).toMatch(/^10\. .* both sides count 9$/);
});

test.each([
  ['lemonsqueezy', 12, '8. The phone tried again: the agent found its instance, and took no third seat'],
  [
    'gumroad',
    11,
    '9. Gumroad counted use 5, but its answer was lost: the agent read the count, and did not send it again',
  ],
  ['polar', 12, '10. 90 uses more are refused as at Polar: License key only has 86 more usages.'],
] as const)('each step of the demo of %s succeeds', async (store, count, step) => {
  const lines: string[] = [];
  expect([await runStoreDemo(store, (line) => lines.push(line)), lines.at(-1)]).toEqual([
    0,
    'Every step succeeded.',
  ]);
  expect(lines).toHaveLength(count);
  expect(lines).toContain(step);
});
