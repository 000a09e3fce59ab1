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

test('the demo of Lemon Squeezy shows an outage, a lost activation and a deactivation', async () => {
  const lines: string[] = [];
  expect([await runStoreDemo('lemonsqueezy', (line) => lines.push(line)), lines.at(-1)]).toEqual([
    0,
    'Every step succeeded.',
  ]);
});

test('the demo of Gumroad shows an outage, a limit, a lost answer and a refund', async () => {
  const lines: string[] = [];
  expect([await runStoreDemo('gumroad', (line) => lines.push(line)), lines.at(-1)]).toEqual([
    0,
    'Every step succeeded.',
  ]);
  expect(lines).toHaveLength(11);
  expect(lines[8]).toMatch(/^9\. Gumroad counted use 5, but its answer was lost/);
});

test('the demo of Polar shows an activation, an outage, a lost answer, a limit of uses and a revocation', async () => {
  const lines: string[] = [];
  expect([await runStoreDemo('polar', (line) => lines.push(line)), lines.at(-1)]).toEqual([
    0,
    'Every step succeeded.',
  ]);
  expect(lines).toHaveLength(12);
  expect(lines[9]).toBe('10. 90 uses more are refused as at Polar: License key only has 86 more usages.');
});
