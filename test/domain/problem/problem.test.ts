import { expect, test } from 'vitest';
import { done, failWith, failWithFaults } from '../../../src/domain/problem/problem.ts';
import { problems } from '../../../src/domain/problem/problem-table.ts';

const all = Object.entries(problems);

test('each problem has an error status, a title of its own and something to do about it', () => {
  expect(all.filter(([, { status }]) => status < 400 || status > 599)).toEqual([]);
  expect(new Set(all.map(([, { title }]) => title)).size).toBe(all.length);
  expect(all.filter(([, { title }]) => !/^[A-Z].*[^.]$/.test(title))).toEqual([]);
  expect(all.filter(([, { remedy }]) => !/^[A-Z].*\.$/.test(remedy))).toEqual([]);
});

test('a code says what is missing or taken, and its status agrees', () => {
  const statusesOf = (ending: string): number[] => [
    ...new Set(all.filter(([code]) => code.endsWith(ending)).map(([, { status }]) => status)),
  ];
  expect(statusesOf('_not_found')).toEqual([404]);
  expect(statusesOf('_taken')).toEqual([409]);
  expect(statusesOf('_forbidden')).toEqual([403]);
  expect(statusesOf('_too_large')).toEqual([413, 431]);
});

test('a refusal says what went wrong, and how long to wait', () => {
  expect(failWith('rate_limited', 'Slowly.', { retryAfterS: 2 })).toEqual({
    ok: false,
    problem: { code: 'rate_limited', detail: 'Slowly.', retryAfterS: 2 },
  });
});

test('a refusal of parameters names every one that is not valid', () => {
  const errors = [
    { parameter: 'code', code: 'required', detail: 'code is required.' },
    { parameter: 'amount_off', code: 'excluded', detail: 'not both.' },
  ];
  expect(failWithFaults(errors)).toEqual({
    ok: false,
    problem: { code: 'parameters_invalid', detail: 'Not valid: code, amount_off.', errors },
  });
});

test.each([
  [50, ''],
  [51, ', and 1 more'],
])('a refusal of %i parameters lists at most fifty, and says how many more there are', (count, more) => {
  const errors = Array.from({ length: count }, () => ({ parameter: 'p', code: 'c', detail: 'd' }));
  const { problem } = failWithFaults(errors);
  expect(problem.errors).toHaveLength(50);
  expect(problem.detail).toBe(`Not valid: ${Array(50).fill('p').join(', ')}${more}.`);
});

test('a result is the value, or the problem that stands in its way', () => {
  expect(done(3)).toEqual({ ok: true, value: 3 });
});
