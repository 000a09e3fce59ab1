import { describe, expect, test } from 'vitest';
import { parseForeignDate } from '../../src/upstream/foreign-date.ts';

const at = Date.UTC(2024, 1, 22, 11, 23, 5);

describe('a date of another system', () => {
  test.each([
    ['2024-02-22T11:23:05Z', at],
    ['2024-02-22T11:23:05+00:00', at],
    ['2024-02-22T11:23:05+0000', at],
    ['2024-02-22T13:23:05+0200', at],
    ['2024-02-22T05:53:05-05:30', at],
    ['2024-02-22T12:23:05+01', at],
    ['2024-02-22T11:23:05', at],
    ['2024-02-22 11:23:05', at],
    ['2024-02-22 11:23:05 UTC', at],
    ['2024-02-22 11:23:05 +0000', at],
    [' 2024-02-22T11:23:05Z\n', at],
    ['2024-02-22T11:23:05.250+0000', at + 250],
    ['2024-02-22T11:23:05,250Z', at + 250],
    ['2024-02-22T11:23:05.250000Z', at + 250],
    ['2024-02-22T11:23Z', at - 5_000],
    ['2024-02-22', Date.UTC(2024, 1, 22)],
    ['Thu, 22 Feb 2024 11:23:05 GMT', at],
    ['Thu, 22 Feb 2024 13:23:05 +0200', at],
    ['22 Feb 2024 11:23:05 UTC', at],
    [at / 1_000, at],
    [String(at / 1_000), at],
    [at, at],
    [at / 1_000 + 0.25, at + 250],
  ])('%j is read', (given, expected) => {
    expect(parseForeignDate(given)).toBe(expected);
  });

  test.each([
    '',
    'yesterday',
    '22/02/2024',
    '02/22/2024 11:23',
    '2024-02-30',
    '2024-02-22T24:00:00Z',
    '2024-02-22T11:23:05+99:99',
    '20240222',
    '9'.repeat(20),
    `Thu, ${' '.repeat(50_000)}`,
    1e300,
    Number.NaN,
    null,
    undefined,
    true,
    {},
  ])('%j is not read', (given) => {
    expect(parseForeignDate(given)).toBeNull();
  });
});
