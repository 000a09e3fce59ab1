import { Readable } from 'node:stream';
import type { Options } from 'csv-parse';

/** A record of a CSV file by the names of its columns, or what is wrong with it; `line` is the one it ends on. */
export type CsvRow = { line: number } & ({ cells: ReadonlyMap<string, string> } | { detail: string });

/** Why a file cannot be read, or not any further; the message is for people. */
export class CsvUnreadable extends Error {}

type Parsed = { record: string[]; info: { empty_lines: number } };

/**
 * The most characters of a record: more than any that can be exported, and few, since a quote that is never
 * closed must not take a whole file for one cell.
 */
const maximumRecordLength = 65_536;

const options: Options = {
  record_delimiter: ['\r\n', '\n', '\r'],
  info: true,
  relax_column_count: true,
  relax_quotes: true,
  skip_empty_lines: true,
  max_record_size: maximumRecordLength,
};

/**
 * Reads CSV (RFC 4180) in UTF-8 as a stream: with or without byte order mark, any line ends, quoted cells,
 * empty lines passed over, a quote within a cell taken as it is. An empty cell counts as not given. Throws
 * `CsvUnreadable` when it is not UTF-8, has no header or one that names a column twice, and behind the
 * last row before a quote that is never closed, or a row that is too long.
 */
export async function* readCsv(
  source: AsyncIterable<Uint8Array>,
  toColumns: (header: readonly string[]) => readonly string[] = (header) => header,
): AsyncGenerator<CsvRow> {
  let header: readonly string[] | null = null;
  let lines = 0;
  let line = 0;
  let isCutOff = false;
  // Loaded where a file is read: commands that read none start without it.
  const { parse } = await import('csv-parse');
  const parser = parse({
    ...options,
    // An error would also drop the records that were read and not yet taken.
    skip_records_with_error: true,
    on_skip: () => {
      isCutOff = true;
    },
  });
  const text = Readable.from(decode(source)).once('error', (error) => parser.destroy(error));
  for await (const { record, info } of text.pipe(parser) as AsyncIterable<Parsed>) {
    // The parser's own count takes the two characters of a line end within quotes for two lines.
    lines += 1 + lineEndsIn(record);
    line = lines + info.empty_lines;
    if (header === null) header = toColumns(readHeader(record));
    else yield readRow(header, record, line);
  }
  if (isCutOff) {
    const fault = `a quote is not closed, or a row has more than ${maximumRecordLength} characters`;
    throw new CsvUnreadable(`Behind line ${line} ${fault}.`);
  }
  if (header === null) throw new CsvUnreadable('There is no header: the first line must name the columns.');
}

async function* decode(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    for await (const chunk of source) yield decoder.decode(chunk, { stream: true });
    yield decoder.decode();
  } catch (error) {
    throw error instanceof TypeError ? new CsvUnreadable('The file is not UTF-8.') : error;
  }
}

function lineEndsIn(record: readonly string[]): number {
  let count = 0;
  for (const cell of record) count += cell.match(/\r\n|\n|\r/g)?.length ?? 0;
  return count;
}

function readHeader(record: readonly string[]): readonly string[] {
  const names = record.map((name) => name.trim());
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return names;
  throw new CsvUnreadable(`The header names the column "${twice.slice(0, 64)}" twice.`);
}

function readRow(header: readonly string[], record: readonly string[], line: number): CsvRow {
  if (record.length !== header.length) {
    return { line, detail: `has ${record.length} cells, and the header ${header.length}` };
  }
  const cells = header.map((name, index): [string, string] => [name, record[index] ?? '']);
  return { line, cells: new Map(cells.filter(([, text]) => text !== '')) };
}
