import { expect, test } from 'vitest';
import { instantCell } from '../../../src/features/bulk/wire/import.ts';

test.each([
  ['2025-03-01', '2025-03-01T00:00:00Z'],
  ['2025-03-01T12:30:00', '2025-03-01T12:30:00Z'],
  ['2025-03-01T12:30:00.250', '2025-03-01T12:30:00.250Z'],
  ['2025-03-01 12:30:00', '2025-03-01T12:30:00Z'],
  ['2025-03-01T12:30:00+02:00', '2025-03-01T10:30:00Z'],
  ['2025-03-01T12:30:00+0200', '2025-03-01T10:30:00Z'],
  ['2025-03-01T12:30', '2025-03-01T12:30:00Z'],
])('a date as stores export it is read: %s', (given, instant) => {
  expect(instantCell.parse(given)).toBe(Date.parse(instant));
});

test.each(['1.3.2025', '2025-02-30', ''])('an ambiguous or invalid date is refused: %s', (given) => {
  expect(instantCell.safeParse(given).success).toBe(false);
});
