import { describe, expect, it } from 'vitest';
import { formatDatetime, isInstant, parseDatetime } from '../../src/domain/time.ts';

const at = Date.UTC(2024, 1, 22, 11, 23, 5);

describe('a datetime', () => {
  it('is written in UTC, in whole seconds', () => {
    expect(formatDatetime(at + 999)).toBe('2024-02-22T11:23:05+00:00');
  });

  it.each([
    ['2024-02-22T11:23:05+00:00', at],
    ['2024-02-22T11:23:05Z', at],
    ['2024-02-22t11:23:05z', at],
    ['2024-02-22 11:23:05Z', at],
    ['2024-02-22T12:53:05+01:30', at],
    ['2024-02-22T03:23:05-08:00', at],
    ['2024-02-22T11:23:05.5Z', at + 500],
    ['2024-02-22T11:23:05.123456789Z', at + 123],
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
  ])('is read from %s', (text, epochMs) => {
    expect(parseDatetime(text)).toBe(epochMs);
  });

  it.each([
    '',
    '2024-02-22',
    '2024-02-22T11:23:05',
    '2024-02-22T11:23Z',
    '2023-02-29T00:00:00Z',
    '2024-13-01T00:00:00Z',
    '2024-04-31T00:00:00Z',
    '2024-02-22T24:00:00Z',
    '2024-02-22T11:60:00Z',
    '2024-02-22T11:23:05+25:00',
    '2024-02-22T11:23:05+0100',
    '22.2.2024 11:23:05',
    ' 2024-02-22T11:23:05Z',
    '1708600985000',
  ])('is not what was written as "%s"', (text) => {
    expect(parseDatetime(text)).toBeNull();
  });
});

it('can be written from the first instant of the year 1 to the last of 9999', () => {
  const [first, last] = [Date.parse('0001-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59.999Z')];
  expect([first - 1, first, last, last + 1].map(isInstant)).toEqual([false, true, true, false]);
});
