import { expect, test } from 'vitest';
import {
  beginningOf,
  csvParts,
  textOf,
} from '../../../../src/features/console/page/pages/selling/csv-parts.ts';
import {
  amountPattern,
  centsOf,
  money,
  percentPattern,
} from '../../../../src/features/console/page/pages/selling/money.ts';

const wide = { records: 100, characters: 100_000 };

test('a CSV file is divided into parts of at most so many records, each with the header and its first line', () => {
  const file = 'key,email\nA,a@example.com\nB,b@example.com\nC,c@example.com\n';
  expect(csvParts(file, { ...wide, records: 2 })).toEqual([
    { text: 'key,email\nA,a@example.com\nB,b@example.com\n', line: 2, records: 2 },
    { text: 'key,email\nC,c@example.com\n', line: 4, records: 1 },
  ]);
});

test('a line break within quotation marks does not end a record, and counts as a line', () => {
  const file = 'code,notes\r\nA,"one\r\ntwo ""and"" three"\r\nB,\r\n';
  const parts = csvParts(file, { ...wide, records: 1 });
  expect(parts.map(({ text }) => text)).toEqual([
    'code,notes\r\nA,"one\r\ntwo ""and"" three"\r\n',
    'code,notes\r\nB,\r\n',
  ]);
  expect(parts.map(({ line }) => line)).toEqual([2, 4]);
});

test('a part ends after the record with which it has enough characters', () => {
  const file = `key\n${'x'.repeat(50)}\n${'y'.repeat(50)}\nz\n`;
  expect(csvParts(file, { records: 100, characters: 40 }).map(({ records }) => records)).toEqual([1, 1, 1]);
});

test('a file without a last line break and with a byte order mark is read as a whole', () => {
  expect(csvParts('\uFEFFkey\nA', wide)).toEqual([{ text: 'key\nA', line: 2, records: 1 }]);
});

test('lines may end as those of old Macintoshes, and empty rows above the header are not the header', () => {
  expect(csvParts('key,email\rA,a\rB,b', { ...wide, records: 1 })).toEqual([
    { text: 'key,email\rA,a\r', line: 2, records: 1 },
    { text: 'key,email\rB,b', line: 3, records: 1 },
  ]);
  expect(csvParts('\n,""\r\nkey,email\nA,a\nB,b\n', { ...wide, records: 1 })).toEqual([
    { text: 'key,email\nA,a\n', line: 4, records: 1 },
    { text: 'key,email\nB,b\n', line: 5, records: 1 },
  ]);
});

test('the beginning of a file ends with a line', async () => {
  for (const end of ['\n', '\r\n', '\r'])
    expect(await (await beginningOf(new Blob([`key${end}A${end}BBBB`]), 8)).text()).toBe(`key${end}A${end}`);
});

test.each(['', 'key,email', 'key,email\n', 'key\n\n\n'])('a file without rows is refused: %j', (file) => {
  expect(() => csvParts(file, wide)).toThrow('The file has no rows');
});

test.each(['utf16le', 'latin1'] as const)('a file in another encoding is refused: %s', (encoding) => {
  expect(() => textOf(Uint8Array.from(Buffer.from('key,email\nMüller,1', encoding)).buffer)).toThrow(
    'The file is not UTF-8: save it as UTF-8.',
  );
  expect(textOf(Uint8Array.from(Buffer.from('key\nMüller')).buffer)).toBe('key\nMüller');
});

test.each([
  ['49', 4900],
  ['49.9', 4990],
  ['49,90', 4990],
  [' 0.05 ', 5],
  ['1234.50', 123_450],
])('the amount %s has %d cents', (text, cents) => {
  expect(centsOf(text)).toBe(cents);
});

test.each(['', '4.999', '-1', '1e3', '1,234.50', 'free', '9'.repeat(13)])('%j is no amount', (text) => {
  expect(centsOf(text)).toBeNull();
});

test.each([
  ['5.00', true],
  ['4,9', true],
  [' 20 ', true],
  ['20%', true],
  ['33.3 %', true],
  ['5.001', false],
  ['five', false],
  ['-5', false],
  ['1e3', false],
])('the field for a discount takes only a percentage or an amount: %s', (text, isTaken) => {
  expect(new RegExp(`^(?:${percentPattern}|${amountPattern})$`, 'v').test(text)).toBe(isTaken);
});

test('cents are written with two places', () => {
  expect([0, 5, 123_450].map((cents) => money(cents, null))).toEqual(['0.00', '0.05', '1,234.50']);
  expect([money(123_450, 'EUR'), money(500, 'JPY')]).toEqual(['€1,234.50', '¥5.00']);
});
