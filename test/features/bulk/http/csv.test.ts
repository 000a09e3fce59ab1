import { Readable } from 'node:stream';
import * as fc from 'fast-check';
import { stringify } from 'csv-stringify/sync';
import { expect, test } from 'vitest';
import { CsvUnreadable, readCsv, type CsvRow, withGuard } from '../../../../src/wire/csv.ts';

async function read(text: string | Uint8Array, chunk = 7): Promise<CsvRow[]> {
  const bytes = Buffer.from(text);
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunk) }, (_, index) =>
    bytes.subarray(index * chunk, (index + 1) * chunk),
  );
  const rows: CsvRow[] = [];
  for await (const more of readCsv(Readable.from(chunks))) rows.push(...more);
  return rows;
}
const cellsOf = (row: CsvRow | undefined): object => (row !== undefined && 'cells' in row ? row.cells : {});

test.for(['\n', '\r\n', '\r'])('rows have their line number with every line ending: %j', async (end) => {
  const rows = await read(['\uFEFFa,b', '1,ü', '', '"two', 'lines",""""', '3', '4,'].join(end));
  expect(rows.map(({ line }) => line)).toEqual([2, 5, 6, 7]);
  expect(cellsOf(rows[0])).toEqual({ a: '1', b: 'ü' });
  expect(cellsOf(rows[1])).toEqual({ a: `two${end}lines`, b: '"' });
  expect(rows[2]).toEqual({ line: 6, detail: 'has 1 cells, and the header 2' });
  expect(cellsOf(rows[3])).toEqual({ a: '4' });
});

test.each(['"QQ10"x', '"a" ', ' "a"', 'ab"c', '"a"b"c"'])(
  'a row with a misplaced quote is rejected, and the rows around it are read: %s',
  async (cell) => {
    for (const misquoted of [`${cell},1`, `1,${cell}`]) {
      const rows = await read(`a,b\n1,2\n${misquoted}\n\n"3, ""4""\n",5\r\n`);
      const detail = expect.stringContaining('has a misplaced quote');
      expect(rows).toEqual([
        { line: 2, cells: { a: '1', b: '2' } },
        { line: 3, detail },
        { line: 6, cells: { a: '3, "4"\n', b: '5' } },
      ]);
    }
  },
);

test('a header with a misplaced quote cannot be read', async () => {
  await expect(read('a,"b"c\n1,2\n')).rejects.toThrow('The header has a misplaced quote');
});

test('rows before an unclosed quote are read, and then the position of the quote is reported', async () => {
  const rows: CsvRow[] = [];
  const source = Readable.from(
    [`a,b\n1,2\n3,4\n5,"6\n${'7,8\n'.repeat(20_000)}`].map((text) => Buffer.from(text)),
  );
  const reading = (async () => {
    for await (const more of readCsv(source)) rows.push(...more);
  })();
  await expect(reading).rejects.toThrow('After line 3, a quote is not closed');
  expect(rows.map(cellsOf)).toEqual([
    { a: '1', b: '2' },
    { a: '3', b: '4' },
  ]);
});

test('a file in another encoding is refused, and not read with replaced characters', async () => {
  await expect(read(Buffer.from('a,b\nM\xFCller,1\n', 'latin1'))).rejects.toThrow(CsvUnreadable);
});

const little = Buffer.from('license_key,buyer_email\nA,a@example.com\n', 'utf16le');
const big = Buffer.from(little).swap16();

test.each([
  ['little endian with a mark', Buffer.concat([Buffer.from([0xff, 0xfe]), little])],
  ['big endian with a mark', Buffer.concat([Buffer.from([0xfe, 0xff]), big])],
  ['little endian', little],
  ['big endian', big],
])('a file in UTF-16 gets the advice to save it as UTF-8: %s', async (_, bytes) => {
  for (const chunk of [1, 7]) {
    await expect(read(bytes, chunk)).rejects.toThrow('The file is UTF-16: save it as UTF-8.');
  }
});

test('written CSV is read back unchanged in chunks of any length', async () => {
  const any = fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => text.replaceAll('\0', ''));
  const formula = fc.string({
    unit: fc.constantFrom(';', "'", '=', '-', '@', '\t', '\n', '\r', 'a', ' '),
    maxLength: 8,
  });
  const cell = fc.oneof(any, formula);
  const table = fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(table, fc.integer({ min: 1, max: 40 }), async (given, chunk) => {
      const filled = given.map(([one, other]) => [`x${one}`, other]);
      const rows = await read(
        stringify([['a', 'b'], ...filled], {
          record_delimiter: '\r\n',
          quoted_match: /[\r\n]/,
          cast: { string: withGuard },
        }),
        chunk,
      );
      const expected = filled.map(([a, b]) => (b === '' ? { a } : { a, b }));
      expect(rows.map(cellsOf)).toEqual(expected);
    }),
  );
});

test('lines without a quote are read like lines after a quote, with every line ending, in chunks of any length', async () => {
  const line = fc.string({ unit: fc.constantFrom('a', 'ü', ',', ' '), maxLength: 6 });
  const end = fc.constantFrom('\n', '\r\n', '\r', '\n\n');
  const file = fc.array(fc.tuple(line, end), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(file, fc.integer({ min: 1, max: 20 }), async (lines, chunk) => {
      const rest = lines.flat().join('');
      expect(await read(`one,two\n${rest}`, chunk)).toEqual(await read(`"one",two\n${rest}`, chunk));
    }),
  );
});

test.each([
  ['plain cells', 'a,b\n1,2\n,\n  ,\t\n,,,,\n \n3,4\n'],
  ['quoted cells', '"a",b\n"1",2\n"",\n" ",""\n,,"",,\n" "\n3,4\n'],
  ['rows above the header', '\n,\n" "\n"",""\na,b\n1,2\n3,4\n'],
])('rows without any text are skipped: %s', async (_, text) => {
  const rows = await read(text);
  expect(rows.map(cellsOf)).toEqual([
    { a: '1', b: '2' },
    { a: '3', b: '4' },
  ]);
  expect(rows.at(-1)?.line).toBe(text.split('\n').length - 1);
});

test.each([
  ['="00126",b', '00126'],
  ['="00126","b"', '00126'],
  ['"=""00126""",b', '00126'],
  ['="",b', undefined],
  ['"=""a""""b""",b', 'a"b'],
  ['"=""a,b""",b', 'a,b'],
  ['"=00126",b', '=00126'],
  ['"=""a""&""b""",b', '="a"&"b"'],
])("the text in a spreadsheet's formula for text is read as the cell: %s", async (row, cell) => {
  expect(await read(`one,two\n${row}\n`)).toEqual([
    { line: 2, cells: { ...(cell !== undefined && { one: cell }), two: 'b' } },
  ]);
});

test.each(['="a,b",c', '="a"b,c', 'x="a",c', '"a,="b",c"', '="a""b",c', '="a,"b"'])(
  'a misplaced quote is found in a row that looks like a formula for text: %s',
  async (row) => {
    expect(await read(`one,two\n${row}\n`)).toEqual([
      { line: 2, detail: expect.stringContaining('has a misplaced quote') as string },
    ]);
  },
);
