import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatDuration, formatSize, parseDuration, parseSize } from '../../src/config/value/unit.ts';

test.each([
  ['500ms', 500],
  ['30s', 30_000],
  ['1.5m', 90_000],
  ['24h', 86_400_000],
  ['7d', 604_800_000],
  ['0', 0],
  ['0s', 0],
  ['0.1s', 100],
])('the duration %s is %d ms', (text, durationMs) => {
  expect(parseDuration(text)).toBe(durationMs);
});

test.each(['30', '', 's', '-1s', '1 s', '1S', '1w', '1e3s', '1.s', '.5s', '1h30m', `${'9'.repeat(20)}d`])(
  '"%s" is not a duration',
  (text) => {
    expect(parseDuration(text)).toBeUndefined();
  },
);

test.each([
  ['1000', 1000],
  ['1000B', 1000],
  ['16KiB', 16_384],
  ['1.5MiB', 1_572_864],
  ['1GiB', 1_073_741_824],
])('the size %s is %d bytes', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes);
});

test.each(['16KB', '16k', '-1', '', '1.5'])('"%s" is not a size', (text) => {
  expect(parseSize(text)).toBeUndefined();
});

test('a written duration or size reads back as the same value', () => {
  fc.assert(
    fc.property(fc.nat({ max: 2 ** 50 }), (quantity) => {
      expect(parseDuration(formatDuration(quantity))).toBe(quantity);
      expect(parseSize(formatSize(quantity))).toBe(quantity);
    }),
  );
});
