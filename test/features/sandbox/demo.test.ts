import { expect, test } from 'vitest';
import { runDemo } from '../../../src/features/sandbox/demo.ts';

test('the demo ends with a lost answer, after which the store and the agent count the use once', async () => {
  const lines: string[] = [];
  expect([await runDemo((line) => lines.push(line)), lines.at(-1)]).toEqual([0, 'Every step succeeded.']);
  expect(lines).toHaveLength(11);
  expect(lines[8]).toMatch(/^9\. The store counted use 9, but its answer was lost/);
  expect(lines[9]).toMatch(/^10\. .* both sides count 9$/);
});
