import { z } from 'zod';
import { readCsv, type CsvRow, type ToColumns } from '../../../wire/bulk/csv.ts';
import { inquire } from '../../client/ask.ts';
import { type Command, defineCommand, type GlobalOptions, operand, textOption } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import type { Output } from '../../output.ts';
import { counted } from '../../../domain/text.ts';
import { withSource } from './csv-source.ts';
import { type Columns, columnsBy } from './import-columns.ts';

/** What can be imported: where its rows go, and the columns that a file may and must have. */
interface Importable extends Columns {
  readonly path: string;
  /** The member of the request that holds the rows. */
  readonly member: string;
  /** What all rows may be of: an option, and the parameter that it becomes. */
  readonly scope: typeof ofProduct | typeof ofAccount;
}

interface ImportOptions extends GlobalOptions {
  readonly file: string;
  readonly product?: string | undefined;
  readonly account?: string | undefined;
  readonly map?: string | undefined;
  readonly dryRun?: boolean | undefined;
}

const ofProduct = {
  name: 'product',
  parameter: 'product_key',
  describe: 'Product key for rows that name none',
} as const;
const ofAccount = {
  name: 'account',
  parameter: 'account_id',
  describe: 'Account that gets them; default: the account named default',
} as const;

/** `license import`. */
export const importLicenses: Command = importCommand({
  path: '/admin/v1/licenses/import',
  member: 'licenses',
  required: ['license_key', 'buyer_email'],
  optional: ['product_key', 'uses', 'enabled', 'date'],
  scope: ofProduct,
});

/** `purchase import`. */
export const importPurchases: Command = importCommand({
  path: '/admin/v1/purchases/import',
  member: 'purchases',
  required: ['license_key', 'buyer_email'],
  optional: ['purchase_id', 'product_key', 'uses', 'enabled', 'date', 'refunded_at'],
  scope: ofProduct,
});

/** `coupon import`. */
export const importCoupons: Command = importCommand({
  path: '/admin/v1/coupons/import',
  member: 'coupons',
  required: ['code', 'coupon_type'],
  optional: [
    'id',
    'percent_off',
    'amount_off',
    'start_date',
    'end_date',
    'product_key',
    'collection_id',
    'minimum_purchase_amount',
    'usage_limit',
    'notes',
  ],
  scope: ofAccount,
});

/** Small enough that the daemon goes on answering others while it reads one. */
const rowsOfRequest = 2000;
/** While the daemon commits half of them together, which writes less than one by one, it reads the other half. */
const requestsAtOnce = 8;
const charactersOfRequest = 1_000_000;
/** With so many rejected it is the wrong file, or a column is mapped wrongly. */
const maximumRejected = 10_000;

interface Rejected {
  readonly line: number;
  readonly code: string;
  readonly detail: string;
}

interface Report {
  imported: number;
  unchanged: number;
  readonly rejected: Rejected[];
}

const answer = z.object({
  imported: z.int(),
  unchanged: z.int(),
  rejected: z.array(z.object({ row: z.int(), code: z.string(), detail: z.string() })),
});

function importCommand(importable: Importable): Command {
  const { member, required, optional, scope } = importable;
  const noun = member.slice(0, -1);
  return defineCommand<ImportOptions>(
    (syntax) =>
      syntax
        .positional('file', operand('CSV file; - is standard input', 'file'))
        .options({
          map: textOption(
            `Names of the columns in the file: COLUMN=THEIRS,… for ${[...required, ...optional].join(', ')}`,
          ),
          'dry-run': { type: 'boolean', describe: 'Say what would be imported, and change nothing' },
        })
        .option(scope.name, textOption(scope.describe, scope.name))
        .example(`latchkey ${noun} import ${noun}s.csv --dry-run`, 'checks the file, and changes nothing'),
    async (args, output) => {
      const report: Report = { imported: 0, unchanged: 0, rejected: [] };
      const code = await importFile(importable, report, args, output);
      const hasRows = report.imported + report.unchanged + report.rejected.length > 0;
      // A file that has but its header is read to its end, too.
      if (hasRows || code === exitCode.done) show(report, args, output);
      return report.rejected.length > 0 && code === exitCode.done ? exitCode.failed : code;
    },
  );
}

/** Sends a file's rows and gives the exit code; what is in, stays in, and an import may be repeated. */
async function importFile(
  importable: Importable,
  report: Report,
  args: ImportOptions,
  output: Output,
): Promise<number> {
  const toColumns = columnsBy(args.map ?? '', importable);
  return await withSource(args.file, output, async (source) => {
    for (const part of inParts(source.bytes, toColumns)) {
      const sent = overlapped(batches(part), async (rows) => ({
        rows: rows.length,
        complain: await send(importable, { rows, report, args }),
      }));
      for await (const { rows, complain } of sent) {
        // Of those that are under way together, the first one says it.
        if (complain !== null) return complain(output);
        source.advance(rows);
        if (rejectedRows(report) <= maximumRejected) continue;
        output.complain([`latchkey: over ${maximumRejected} rows are rejected: the rest was not read`]);
        return exitCode.failed;
      }
    }
    return exitCode.done;
  });
}

/**
 * A file in parts, each to be sent when all before it is in: rows that leave their column `id` empty come last, since
 * their new id might be one that a later row names.
 */
function inParts(bytes: AsyncIterable<Uint8Array>, toColumns: ToColumns): readonly Rows[] {
  const withoutId: CsvRow[] = [];
  let hasIds = false;
  const file = readCsv(bytes, (header) => {
    const columns = toColumns(header);
    hasIds = columns.includes('id');
    return columns;
  });
  async function* first(): AsyncGenerator<readonly CsvRow[]> {
    for await (const rows of file) {
      const isWithoutId = (row: CsvRow): boolean => hasIds && 'cells' in row && row.cells['id'] === undefined;
      withoutId.push(...rows.filter(isWithoutId));
      yield rows.filter((row) => !isWithoutId(row));
    }
  }
  return [first(), [withoutId]];
}

type Rows = AsyncIterable<readonly CsvRow[]> | readonly (readonly CsvRow[])[];

/** Gathers rows for a request each; also those before a fault of the file, which then follows. */
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

/** Works on a few items at once; yields the results in order, all before a fault of the items. */
async function* overlapped<Item, Value>(
  items: AsyncIterable<Item>,
  work: (item: Item) => Promise<Value>,
): AsyncGenerator<Value> {
  const underWay: Promise<Value>[] = [];
  try {
    for await (const item of items) {
      underWay.push(work(item));
      if (underWay.length < requestsAtOnce) continue;
      for (const first of underWay.splice(0, 1)) yield await first;
    }
  } catch (error) {
    for (const each of underWay) yield await each;
    throw error;
  }
  for (const each of underWay) yield await each;
}

interface Batch {
  readonly rows: readonly CsvRow[];
  readonly report: Report;
  readonly args: ImportOptions;
}

/** Sends some rows, and adds what became of them to the report; gives what says why they could not be sent. */
async function send(
  { path, member, scope }: Importable,
  { rows, report, args }: Batch,
): Promise<((output: Output) => number) | null> {
  const request = {
    method: 'POST' as const,
    path,
    query: { dry_run: args.dryRun, [scope.parameter]: args[scope.name] },
    // The daemon rejects a row that cannot be read, so that its audit log counts the row too.
    json: { [member]: rows.map((row) => ('cells' in row ? row.cells : null)) },
  };
  const asked = await inquire(args, request, answer);
  if (!asked.ok) return asked.complain;
  const { data } = asked;
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
  return null;
}

function show(report: Report, { json, dryRun }: ImportOptions, output: Output): void {
  const { imported, unchanged } = report;
  const rejected = report.rejected.toSorted((one, other) => one.line - other.line);
  if (json) {
    output.printJson({ imported, unchanged, rejected });
    return;
  }
  if (rejected.length > 0) output.complain(rejected.map(({ line, detail }) => `line ${line}: ${detail}`));
  const done = dryRun ? 'would be imported' : 'imported';
  output.print(
    `${imported} ${done}, ${counted(unchanged, 'was', 'were')} here already, ${rejectedRows(report)} rejected`,
  );
}

/** How many rows are rejected: one may have several faults. */
function rejectedRows({ rejected }: Report): number {
  return new Set(rejected.map(({ line }) => line)).size;
}
