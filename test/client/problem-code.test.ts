import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { problems } from '../../src/domain/problem/problem-table.ts';

it('the client knows every problem by its code', () => {
  const source = readFileSync(new URL('../../src/client/problem-code.ts', import.meta.url), 'utf8');
  expect([...source.matchAll(/'(\w+)'/g)].map(([, code]) => code)).toEqual(Object.keys(problems));
});
