import { describe, expect, test } from 'vitest';
import { parseHttpDate, parseRetryAfter } from '../../src/upstream/http-date.ts';

const instant = Date.UTC(1994, 10, 6, 8, 49, 37);

describe('an HTTP date', () => {
  test.each(['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'])(
    'is read in the form %s',
    (text) => expect(parseHttpDate(text)).toBe(instant),
  );

  test.each(['', '1994', '-5', 'tomorrow', 'Sunday', '1994-11-06T08:49:37Z'])('is not %j', (text) =>
    expect(parseHttpDate(text)).toBeNull(),
  );
});

describe('Retry-After', () => {
  const day = 86_400_000;
  test.each([
    ['120', 120_000],
    [' 0 ', 0],
    ['-5', 0],
    ['999999999999', day],
    ['9'.repeat(400), day],
    ['Sun, 06 Nov 1994 08:50:37 GMT', 60_000],
    ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
    ['Sun, 06 Nov 2050 08:00:00 GMT', day],
    ['', null],
    ['soon', null],
    ['1.5e3', null],
    ['12, 13', null],
  ])('%j is a wait of %j ms', (text, expected) => expect(parseRetryAfter(text, instant)).toBe(expected));
});
