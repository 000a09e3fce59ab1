import { Readable } from 'node:stream';
import type { Options } from 'csv-parse';

/** A record of a CSV file by the names of its columns, or its error; `line` is the last line of the record. */
export type CsvRow = { line: number } & ({ cells: Readonly<Record<string, string>> } | { detail: string });

/** How a file is written; `separator`: what is between its cells. */
export type CsvFormat = { readonly separator: string; readonly encoding: 'utf-8' | 'windows-1252' };

const usual: CsvFormat = { separator: ',', encoding: 'utf-8' };

/** What a file seems to be written in, and how it would be read so. */
export type OtherFormat = {
  readonly option: 'separator' | 'encoding';
  readonly value: string;
  readonly reading: string;
};

/** The file cannot be read, or cannot be read further; the message is for people. */
export class CsvUnreadable extends Error {
  readonly other: OtherFormat | null;

  constructor(message: string, other: OtherFormat | null = null) {
    super(message);
    this.other = other;
  }
}

/** Renames the columns of a file; a column without a name is ignored. */
export type ToColumns = (header: readonly string[]) => readonly string[];

/**
 * The columns of a header that differ from a missing known column only in letter case: ignoring them would lose their
 * values.
 */
export function findMiswritten(
  header: readonly string[],
  known: Iterable<string>,
): { theirs: string; ours: string }[] {
  const lacking = [...known].filter((name) => !header.includes(name));
  return header.flatMap((theirs) => {
    const ours = lacking.find((name) => name === theirs.toLowerCase());
    return ours === undefined ? [] : [{ theirs, ours }];
  });
}

const separators = [
  [';', 'semicolons'],
  ['\t', 'tabs'],
  ['|', 'bars'],
] as const;

/** The characters between cells, by the names that a person chooses. */
export const separatorNames: Readonly<Record<string, string>> = {
  comma: ',',
  ...Object.fromEntries(separators.map(([character, name]) => [name.slice(0, -1), character])),
};

/**
 * The error of a header whose cells are separated by something other than commas, as spreadsheets write it in much of
 * the world; null if there is none.
 */
export function separatorFault(header: readonly string[]): CsvUnreadable | null {
  const [only = '', ...others] = header;
  const found = others.length === 0 ? separators.find(([character]) => only.includes(character)) : undefined;
  if (found === undefined) return null;
  const [character, name] = found;
  return new CsvUnreadable(`The header has ${name} between its cells: save the file with commas.`, {
    option: 'separator',
    value: name.slice(0, -1),
    reading: only.replaceAll('"', '').split(character).join(', ').slice(0, 200),
  });
}

type Parsed = { record: string[]; raw: string; info: { empty_lines: number } };

/**
 * The maximum length of a record: longer than any exported record, but limited, because a quote that is never closed
 * would make one cell of the whole file.
 */
const maximumRecordLength = 65_536;

/** The maximum number of columns. */
const maximumColumns = 1000;

/** How many rows are yielded together. */
const rowsAtOnce = 500;

/** How much text is parsed before other work of the process runs. */
const charactersAtOnce = 65_536;

const options: Options = {
  record_delimiter: ['\r\n', '\n', '\r'],
  info: true,
  raw: true,
  relax_column_count: true,
  // Rows with a misplaced quote are refused below, with their line; the parser would lose count of the lines.
  relax_quotes: true,
  skip_empty_lines: true,
  max_record_size: maximumRecordLength,
};

const misquoted =
  'has a misplaced quote: a cell with quotes in it is quoted as a whole, and each in it doubled';

/**
 * Reads CSV (RFC 4180) in UTF-8 as a stream, some rows at a time: with or without a byte order mark, with any line
 * ends and with quoted cells. Empty rows are skipped, and an empty cell counts as not given. Throws `CsvUnreadable` if
 * the file is not UTF-8, has no header, or its header names a column twice or has a misplaced quote. A quote that is
 * never closed and a row that is too long are reported after the rows before them.
 */
export async function* readCsv(
  source: AsyncIterable<Uint8Array>,
  toColumns: ToColumns = (header) => header,
  { separator, encoding }: CsvFormat = usual,
): AsyncGenerator<readonly CsvRow[]> {
  const table = new Table(toColumns, separator);
  const pieces = decode(source, encoding)[Symbol.asyncIterator]();
  let text = '';
  for (let piece = await pieces.next(); piece.done !== true; piece = await pieces.next()) {
    text += piece.value;
    const { lines, rest } = splitLines(text);
    if (!isPlain(text, [...lines, rest])) {
      yield* readQuoted(text, pieces, table);
      return;
    }
    yield table.readLines(lines);
    text = rest;
  }
  yield table.readLines([text.replace(/\r$/, '')]);
  table.end();
}

/** The complete lines, and the rest. */
function splitLines(text: string): { lines: string[]; rest: string } {
  // A carriage return at the end may be the first half of a line end.
  const sure = text.endsWith('\r') ? text.slice(0, -1) : text;
  const end = Math.max(sure.lastIndexOf('\n'), sure.lastIndexOf('\r')) + 1;
  const lines = text.slice(0, end).split(/\r\n|\n|\r/);
  lines.pop();
  return { lines, rest: text.slice(end) };
}

/** Whether each line is a row and each comma separates cells, as in most files: they need no parser, which is slower. */
function isPlain(text: string, lines: readonly string[]): boolean {
  return !text.includes('"') && lines.every((line) => line.length <= maximumRecordLength);
}

/** Reads the rest of a file, from the first piece that has a quote in it. */
async function* readQuoted(
  first: string,
  others: AsyncIterator<string>,
  table: Table,
): AsyncGenerator<readonly CsvRow[]> {
  let isCutOff = false;
  // Loaded on first use: most commands start without it.
  const { parse } = await import('csv-parse');
  const parser = parse({
    ...options,
    delimiter: table.separator,
    // An error would also drop records that were parsed but not yet yielded.
    skip_records_with_error: true,
    on_skip: () => {
      isCutOff = true;
    },
  });
  const cellWithQuotes = cellEndingWith(table.separator);
  const text = Readable.from(joined(first, others)).once('error', (error) => parser.destroy(error));
  let rows: CsvRow[] = [];
  let emptyLines = 0;
  try {
    for await (const { record, raw, info } of text.pipe(parser) as AsyncIterable<Parsed>) {
      // The parser counts the two characters of a line end within quotes as two lines.
      table.pass(info.empty_lines - emptyLines);
      emptyLines = info.empty_lines;
      table.readInto(rows, record, 1 + lineEndsIn(record), areQuotesInPlace(raw, cellWithQuotes));
      if (rows.length < rowsAtOnce) continue;
      yield rows;
      rows = [];
    }
  } catch (error) {
    // The rows before the error are valid.
    yield rows;
    throw error;
  }
  yield rows;
  table.end(isCutOff);
}

async function* joined(first: string, others: AsyncIterator<string>): AsyncGenerator<string> {
  yield* slices(first);
  for (let piece = await others.next(); piece.done !== true; piece = await others.next())
    yield* slices(piece.value);
}

async function* slices(text: string): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += charactersAtOnce) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    yield text.slice(at, at + charactersAtOnce);
  }
}

/** A cell that is quoted as a whole, is a formula for text (`="00126"`), or has no quotes; and what ends the cell. */
function cellEndingWith(separator: string): RegExp {
  const end = RegExp.escape(separator);
  const plain = `[^"${end}\\r\\n]*`;
  return new RegExp(`(?:="${plain}"|(?:"[^"]*")+|${plain})(?:(${end})|(?=[\\r\\n]*$))`, 'y');
}

/** Whether each quote of a record is at a valid place. `raw` is the record with the line ends around it. */
function areQuotesInPlace(raw: string, cellWithQuotes: RegExp): boolean {
  // Matches cell by cell: an expression for the whole record would overflow V8's stack on a long record.
  cellWithQuotes.lastIndex = raw.search(/[^\r\n]/);
  for (;;) {
    const cell = cellWithQuotes.exec(raw);
    if (cell?.[1] === undefined) return cell !== null;
  }
}

/** Turns the records of a file into rows; the first record is the header. */
class Table {
  readonly #toColumns: ToColumns;
  readonly separator: string;
  #columns: readonly string[] | null = null;
  #lines = 0;
  /** The line of the last record. */
  #line = 0;

  constructor(toColumns: ToColumns, separator: string) {
    this.#toColumns = toColumns;
    this.separator = separator;
  }

  /** Counts lines without a record. */
  pass(emptyLines: number): void {
    this.#lines += emptyLines;
  }

  /** Reads lines without a quote in them. */
  readLines(lines: readonly string[]): CsvRow[] {
    const rows: CsvRow[] = [];
    for (const line of lines) {
      if (line === '') this.pass(1);
      else this.readInto(rows, line.split(this.separator), 1);
    }
    return rows;
  }

  /** Reads a record that has this many lines. */
  readInto(rows: CsvRow[], record: readonly string[], lines: number, isWellQuoted = true): void {
    this.#lines += lines;
    // Spreadsheets write rows of empty cells, also above the header.
    if (record.every((cell) => cell.trim() === '')) return;
    this.#line = this.#lines;
    if (this.#columns === null) {
      if (!isWellQuoted) throw separatorFault(record) ?? new CsvUnreadable(`The header ${misquoted}.`);
      this.#columns = this.#toColumns(readHeader(record));
    } else if (isWellQuoted) rows.push(readRow(this.#columns, record, this.#line));
    else rows.push({ line: this.#line, detail: misquoted });
  }

  /** Throws if the file has no header, or was not read to its end. */
  end(isCutOff = false): void {
    if (isCutOff) {
      const fault = `a quote is not closed, or a row has more than ${maximumRecordLength} characters`;
      const where = this.#line === 0 ? 'In the header,' : `After line ${this.#line},`;
      throw new CsvUnreadable(`${where} ${fault}.`);
    }
    if (this.#columns === null)
      throw new CsvUnreadable('It is empty: the first line of CSV names the columns.');
  }
}

async function* decode(
  source: AsyncIterable<Uint8Array>,
  encoding: CsvFormat['encoding'],
): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding, { fatal: true });
  let first: number | undefined;
  let last: Uint8Array | undefined;
  try {
    for await (const chunk of source) {
      last = chunk;
      first ??= chunk[0];
      const text = decoder.decode(chunk, { stream: true });
      if (text.includes('\0')) throw new CsvUnreadable(isUtf16);
      yield text;
    }
    yield decoder.decode();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    // The byte order mark of UTF-16 begins with a byte that UTF-8 never has.
    const hasMark = first === 0xff || first === 0xfe;
    if (hasMark) throw new CsvUnreadable(isUtf16);
    const encodingName = 'windows-1252';
    const reading = foreignWord(last ?? new Uint8Array(), encodingName);
    const other = { option: 'encoding', value: encodingName, reading } as const;
    throw new CsvUnreadable('The file is not UTF-8: save it as UTF-8.', other);
  }
}

/** A word with a letter that is not one of ASCII, which shows a person whether an encoding is right; '': there is none. */
export function foreignWord(bytes: Uint8Array, encoding: CsvFormat['encoding']): string {
  const words = new TextDecoder(encoding).decode(bytes).split(/[\s;,|"]+/);
  return words.find((word) => /[^\0-\x7f]/.test(word))?.slice(0, 64) ?? '';
}

const isUtf16 = 'The file is UTF-16: save it as UTF-8.';

function lineEndsIn(record: readonly string[]): number {
  let count = 0;
  for (const cell of record) count += cell.match(/\r\n|\n|\r/g)?.length ?? 0;
  return count;
}

function readHeader(record: readonly string[]): readonly string[] {
  if (record.length > maximumColumns) {
    throw new CsvUnreadable(`The header has more than ${maximumColumns} columns.`);
  }
  const names = record.map((name) => name.trim());
  const twice = names.find((name, index) => name !== '' && names.indexOf(name) !== index);
  if (twice === undefined) return names;
  throw new CsvUnreadable(`The header names the column "${twice.slice(0, 64)}" twice.`);
}

function readRow(header: readonly string[], record: readonly string[], line: number): CsvRow {
  if (record.length !== header.length) {
    return { line, detail: `has ${record.length} cells, and the header ${header.length}` };
  }
  // A column may have the name `constructor`.
  const cells = Object.create(null) as Record<string, string>;
  header.forEach((name, index) => {
    const text = withoutGuard(withoutFormula(record[index] ?? ''));
    if (name !== '' && text !== '') cells[name] = text;
  });
  return { line, cells };
}

/** The text of a cell that is a formula for text: `="00126"` keeps a spreadsheet from reading a number. */
function withoutFormula(cell: string): string {
  if (!cell.startsWith('="') || !cell.endsWith('"') || cell.length < 3) return cell;
  const text = cell.slice(2, -1);
  return text.replaceAll('""', '').includes('"') ? cell : text.replaceAll('""', '"');
}

/**
 * Where a spreadsheet may begin to read a formula: at the start of a cell, or after what it may take for the end of the
 * cell before, such as the semicolon in much of the world.
 */
const formulaStart = /(^|[;\t\r\n])( *'*)(?=[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/g;
const guardedStart = /(^|[;\t\r\n])( *'*)'(?=[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/g;

/** Keeps a spreadsheet from running text as a formula: `'` before the formula. `readCsv` removes the guard. */
export function withGuard(cell: string): string {
  return cell.replace(formulaStart, "$1$2'");
}

function withoutGuard(cell: string): string {
  return cell.includes("'") ? cell.replace(guardedStart, '$1$2') : cell;
}
