import { expect, test } from 'vitest';
import { fromNow, longTime, timeRange } from '../../../../src/features/console/page/format.ts';

const now = Date.parse('2026-05-03T12:00:00Z');

test('An instant of the last 30 days is said as people say it, and an earlier or later one by its date.', () => {
  expect(fromNow('2026-05-03T11:57:00Z', now)).toBe('3 minutes ago');
  expect(fromNow('2026-05-13T12:00:00Z', now)).toBe('in 10 days');
  expect(fromNow('2026-02-03T12:00:00Z', now)).toBe('3 Feb 2026');
  expect(fromNow('2027-05-03T12:00:00Z', now)).toBe('3 May 2027');
});

test('An exact time and a range of times name their time zone.', () => {
  expect(longTime('2026-05-03T12:05:09Z')).toMatch(/^3 May 2026, \d\d:\d\d:09 [A-Z]+\S*$/);
  expect(timeRange(now, now + 60_000)).toMatch(/^3 May, \d\d:\d\d to \d\d:\d\d [A-Z]+\S*$/);
  expect(timeRange(now, now + 86_400_000)).toMatch(/^3 May, \d\d:\d\d to 4 May, \d\d:\d\d [A-Z]+\S*$/);
});
