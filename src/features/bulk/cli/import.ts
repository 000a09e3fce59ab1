import { CsvUnreadable, readCsv, separatorNames, type CsvFormat, type CsvRow } from '../../../wire/csv.ts';
import { counted } from '../../../domain/text.ts';
import { request } from '../../../cli/client/request.ts';
import {
  type Command,
  CommandError,
  defineCommand,
  type GlobalOptions,
  positional,
  textOption,
  UsageError,
} from '../../../cli/command.ts';
import { exitCode } from '../../../cli/exit-code.ts';
import type { Output } from '../../../cli/output.ts';
import { ColumnMapping, type ColumnOptions, type Columns } from '../wire/mapping/columns.ts';
import { importable, type ImportedNoun } from '../wire/mapping/importable.ts';
import { MappingFault } from '../wire/mapping/mapping-fault.ts';
import { profiles } from '../wire/mapping/profiles.ts';
import { withCsvFile } from '../../../cli/csv-file.ts';
import { importReport } from '../wire/import.ts';

/** What can be imported, and what its rows belong to by default. */
interface Importable {
  readonly describe: string;
  readonly noun: ImportedNoun;
  readonly scope: typeof scopeProduct | typeof scopeAccount;
}

interface ImportOptions extends GlobalOptions, ColumnOptions {
  readonly file: string;
  readonly account?: string | undefined;
  readonly dryRun?: boolean | undefined;
  readonly separator?: string | undefined;
  readonly encoding?: CsvFormat['encoding'] | undefined;
}

/** The option and the parameter for what rows belong to if they do not say it. */
export const scopeProduct = {
  name: 'product',
  parameter: 'product_key',
  describe: 'Product key for rows that name none',
} as const;
export const scopeAccount = {
  name: 'account',
  parameter: 'account_id',
  describe: 'Account of the coupons; default: the account named default',
} as const;

/** Keeps each request small, so that the daemon can serve other requests in between. */
const rowsOfRequest = 2000;
/** The daemon commits several requests together, which writes less, while it reads the others. */
const concurrency = 8;
const charactersOfRequest = 1_000_000;
/** Above this, the file is probably the wrong one, or a column is mapped wrongly. */
const maxRejected = 10_000;

interface Rejected {
  readonly line: number;
  readonly code: string;
  readonly detail: string;
  readonly value?: string | undefined;
}

interface Report {
  imported: number;
  unchanged: number;
  readonly rejected: Rejected[];
  readonly columns: ColumnMapping;
}

export function defineImport(imported: Importable): Command {
  const { describe, noun, scope } = imported;
  const columnsOf: Columns = importable[noun];
  const { required, optional } = columnsOf;
  return defineCommand({
    command: 'import <file>',
    describe,
    builder: {
      file: positional('CSV file; - is standard input', 'file'),
      map: textOption(
        `Names of the columns in the file: COLUMN=THEIRS,… for ${[...required, ...optional].join(', ')}${valueHelp(columnsOf)}`,
      ),
      ignore: textOption('Columns of the file that may be lost although they look like states: THEIRS,…'),
      ...(optional.includes('refunded') && { from: profileOption }),
      separator: {
        choices: Object.keys(separatorNames),
        describe: 'What is between the cells; default: comma',
      },
      encoding: { choices: ['utf-8', 'windows-1252'], describe: 'Default: utf-8' },
      'dry-run': { type: 'boolean', describe: 'Show what would be imported, and change nothing' },
      [scope.name]: textOption(scope.describe, scope.name),
    },
    examples: [[`latchkey ${noun} import ${noun}s.csv --dry-run`, 'checks the file, and changes nothing']],
    handler: async (parsed, output) => {
      const args = parsed as unknown as ImportOptions;
      const columns = mappingOf(columnsOf, args);
      const report: Report = { imported: 0, unchanged: 0, rejected: [], columns };
      try {
        await importFile(imported, report, args);
      } catch (error) {
        if (error instanceof MappingFault) throw usageErrorOf(error);
        if (!(error instanceof CommandError)) throw error;
        output.printError(error.lines, error.refusal);
        const hasRows = report.imported + report.unchanged + report.rejected.length > 0;
        if (hasRows) await show(report, args, output);
        return error.code;
      }
      await show(report, args, output);
      return report.rejected.length > 0 ? exitCode.failed : exitCode.done;
    },
  });
}

function mappingOf(columns: Columns, args: ImportOptions): ColumnMapping {
  try {
    return new ColumnMapping(columns, args, Date.now());
  } catch (error) {
    throw error instanceof MappingFault ? usageErrorOf(error) : error;
  }
}

function usageErrorOf({ parameter, given, message }: MappingFault): UsageError {
  return new UsageError(`--${parameter} ${given}: ${message}`);
}

function valueHelp({ optional }: Columns): string {
  if (optional.includes('enabled'))
    return '. A state needs its words: enabled=status:active|inactive (- is an empty cell, * any other). A date may need its order: date=THEIRS:D.M.Y, :D/M/Y or :M/D/Y';
  return optional.includes('amount_off')
    ? '. An amount needs its unit: amount_off=THEIRS:money or :cents'
    : '';
}

const profileOption = {
  choices: Object.keys(profiles),
  describe: `The columns of an export: ${Object.entries(profiles)
    .map(([name, { describe }]) => `${name} (${describe})`)
    .join(', ')}. product_key is the product id of the store`,
} as const;

/** Sends the rows of a file. After an error, imported rows stay, and the import can be repeated. */
async function importFile(imported: Importable, report: Report, args: ImportOptions): Promise<void> {
  await withCsvFile(args.file, async (source) => {
    for (const part of inParts(source.bytes, report.columns, formatOf(args))) {
      const sent = overlapped(batches(part), async (rows) => ({
        rows: rows.length,
        // Several requests may fail; only the first failure is reported.
        failure: await send(imported, { rows, report, args }).then(
          () => null,
          (error: Error) => error,
        ),
      }));
      for await (const { rows, failure } of sent) {
        if (failure !== null) throw failure;
        source.advance(rows);
        if (rejectedRows(report) > maxRejected)
          throw new CommandError([`latchkey: over ${maxRejected} rows are rejected: the rest was not read`]);
      }
    }
  });
}

/**
 * Divides a file into two parts. The second part is sent after the first: rows with an empty `id` get a new id, which
 * must not be one that a later row names, and a renewal is imported only if no other row has its key.
 */
function inParts(
  bytes: AsyncIterable<Uint8Array>,
  columns: ColumnMapping,
  format: CsvFormat,
): readonly Rows[] {
  const withoutId: CsvRow[] = [];
  async function* first(): AsyncGenerator<readonly CsvRow[]> {
    for await (const read of offering(readCsv(bytes, (header) => columns.toColumns(header), format))) {
      const rows = read.map((row) => columns.convert(row)).filter((row) => row !== null);
      const isWithoutId = (row: CsvRow): boolean =>
        columns.has('id') && 'cells' in row && row.cells['id'] === undefined;
      withoutId.push(...rows.filter(isWithoutId));
      yield rows.filter((row) => !isWithoutId(row));
    }
  }
  async function* second(): AsyncGenerator<readonly CsvRow[]> {
    yield withoutId;
    yield columns.takeRenewals();
  }
  return [first(), second()];
}

type Rows = AsyncIterable<readonly CsvRow[]>;

function formatOf({ separator = 'comma', encoding = 'utf-8' }: ImportOptions): CsvFormat {
  return { separator: separatorNames[separator] ?? ',', encoding };
}

/** Shows how a file would be read in the format that it seems to have, and the option that confirms it. */
async function* offering(file: Rows): AsyncGenerator<readonly CsvRow[]> {
  try {
    yield* file;
  } catch (error) {
    if (!(error instanceof CsvUnreadable) || error.other === null) throw error;
    const { option, value, reading } = error.other;
    throw new CsvUnreadable(`${error.message} Or, if this is right, add --${option} ${value}: ${reading}`);
  }
}

/** Groups rows into requests. If the file has an error, the rows before it are yielded first. */
async function* batches(file: Rows): AsyncGenerator<readonly CsvRow[]> {
  let batch: CsvRow[] = [];
  let characters = 0;
  try {
    for await (const rows of file) {
      for (const row of rows) {
        batch.push(row);
        characters += lengthOf(row);
        if (batch.length < rowsOfRequest && characters < charactersOfRequest) continue;
        yield batch;
        batch = [];
        characters = 0;
      }
    }
  } catch (error) {
    if (batch.length > 0) yield batch;
    throw error;
  }
  if (batch.length > 0) yield batch;
}

function lengthOf(row: CsvRow): number {
  if (!('cells' in row)) return 0;
  let characters = 0;
  for (const text of Object.values(row.cells)) characters += text.length;
  return characters;
}

/** Works on a few items at once and yields the results in order. If the items fail, the results before are yielded first. */
async function* overlapped<Item, Value>(
  items: AsyncIterable<Item>,
  work: (item: Item) => Promise<Value>,
): AsyncGenerator<Value> {
  const running: Promise<Value>[] = [];
  try {
    for await (const item of items) {
      running.push(work(item));
      if (running.length < concurrency) continue;
      for (const first of running.splice(0, 1)) yield await first;
    }
  } catch (error) {
    for (const each of running) yield await each;
    throw error;
  }
  for (const each of running) yield await each;
}

interface Batch {
  readonly rows: readonly CsvRow[];
  readonly report: Report;
  readonly args: ImportOptions;
}

/** Sends rows and adds the result to the report. */
async function send({ noun, scope }: Importable, { rows, report, args }: Batch): Promise<void> {
  const call = {
    method: 'POST' as const,
    path: `/admin/v1/${noun}s/import`,
    query: { dry_run: args.dryRun, [scope.parameter]: args[scope.name] },
    // A row that cannot be read is sent as null, so that the daemon's audit log counts it as rejected.
    json: { [`${noun}s`]: rows.map((row) => ('cells' in row ? row.cells : null)) },
  };
  const { data } = await request(args, call, importReport);
  report.imported += data.imported;
  report.unchanged += data.unchanged;
  for (const row of rows) {
    const { line } = row;
    if ('detail' in row) report.rejected.push({ line, code: 'malformed', detail: `The row ${row.detail}.` });
  }
  for (const { row: number, ...why } of data.rejected) {
    const row = rows[number - 1];
    if (row === undefined || 'cells' in row) report.rejected.push({ line: row?.line ?? 0, ...why });
  }
}

async function show(report: Report, { json, dryRun }: ImportOptions, output: Output): Promise<void> {
  const { imported, unchanged, columns } = report;
  const { ignored, withoutKey, renewals } = columns;
  const rejected = report.rejected.toSorted((one, other) => one.line - other.line);
  if (!json && rejected.length > 0) output.printError(linesOf(rejected, columns));
  const done = dryRun ? 'would be imported' : 'imported';
  const lines = [
    `${imported} ${done}, ${unchanged} unchanged, ${rejectedRows(report)} rejected`,
    ...(ignored.length > 0 ? [`Ignored columns: ${ignored.join(', ')}`] : []),
    ...(withoutKey > 0 ? [`Left out, because they have no license key: ${counted(withoutKey, 'row')}`] : []),
    ...(renewals > 0
      ? [`Left out, because they renew the key of another row: ${counted(renewals, 'row')}`]
      : []),
  ];
  const counts = { imported, unchanged, without_key: withoutKey, renewals };
  await output.result({ ...counts, ignored, rejected }, lines.join('\n'));
}

/** One line for each kind of error: where it is first, the value there, and in how many other rows it is. */
function linesOf(rejected: readonly Rejected[], columns: ColumnMapping): string[] {
  const kinds = Map.groupBy(rejected, ({ detail }) => detail.replaceAll(/"[^"]*"/g, '""'));
  return [...kinds.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const { line, detail, value } = first;
    const [ours = ''] = detail.split(' ', 1);
    const map = `${ours}=${columns.theirsOf(ours) ?? 'THEIRS'}`;
    const it = value === undefined ? '' : ` It is ${JSON.stringify(value)}.${adviceFor(value, map)}`;
    const more = others.length === 0 ? '' : ` The same in ${counted(others.length, 'other row')}.`;
    return [`line ${line}: ${detail}${it}${more}`];
  });
}

/** How to confirm the order of a date that is not one of ISO 8601. */
function adviceFor(value: string, map: string): string {
  const [, separator] = /^\d{1,2}([./])\d{1,2}\1\d{4}\b/.exec(value) ?? [];
  if (separator === undefined) return '';
  const [order, or] = separator === '.' ? ['D.M.Y', ''] : ['D/M/Y', ' or :M/D/Y'];
  return ` To read it by day, month and year: --map '${map}:${order}'${or}.`;
}

/** Counts the rejected rows. A row may have several errors. */
function rejectedRows({ rejected }: Report): number {
  return new Set(rejected.map(({ line }) => line)).size;
}
