import { z } from 'zod';
import type { ParameterFault } from '../../../domain/problem/problem.ts';
import type { ImportReport, ImportRows, RejectedRow } from '../../../service/authority/import.ts';
import { type CsvRow, findMiswritten } from './csv.ts';
import { boolean, kind, orDefault, refuse } from '../common/kind.ts';
import type { ParameterSet, Readable } from '../common/parameters.ts';

/** The most rows of one request. */
export const maximumRows = 10_000;

/** Rows that came as CSV; those of JSON come as a list of objects. */
export class CsvRows {
  readonly header: readonly string[];
  readonly rows: readonly CsvRow[];

  constructor(header: readonly string[], rows: readonly CsvRow[]) {
    this.header = header;
    this.rows = rows;
  }
}

/** Rows as they were read: each with its number, from 1, or for CSV its line. */
export type ReadRows<Values> = {
  read: readonly (Values & { row: number })[];
  rejected: readonly RejectedRow[];
};

type RawRow = { row: number } & ({ cells: Readable } | { detail: string });

/** A parameter that is a list of rows; what is wrong with one of them is that row's alone. */
export function rowsOf<Values>(fields: ParameterSet<Values>): z.ZodType<ReadRows<Values>> {
  const columns = new Set(Object.keys(fields.schema.shape));
  return kind({ type: 'array' }, (given, issues) => {
    const [miswritten] = given instanceof CsvRows ? findMiswritten(given.header, columns) : [];
    if (miswritten !== undefined) {
      const { theirs, ours } = miswritten;
      return refuse(issues, 'malformed', `must name the column ${ours} as it is written here, not ${theirs}`);
    }
    const rows = given instanceof CsvRows ? fromCsv(given, columns) : fromJson(given);
    if (rows === null) return refuse(issues, 'not_a_list', 'must be a list of objects');
    if (rows.length > maximumRows) return refuse(issues, 'too_long', `must have at most ${maximumRows} rows`);
    return readRows(rows, fields);
  });
}

/** The rows, for the documentation; `rowsOf` reads them. */
export function describedRows({ schema }: ParameterSet<unknown>): z.ZodType {
  return z.array(schema).max(maximumRows);
}

/** Other columns of a file are passed over: stores export many. */
function fromCsv({ rows }: CsvRows, columns: ReadonlySet<string>): RawRow[] {
  return rows.map((given) => {
    if ('detail' in given) return { row: given.line, detail: given.detail };
    return { row: given.line, cells: new Cells(given.cells, columns) };
  });
}

function fromJson(given: unknown): RawRow[] | null {
  if (!Array.isArray(given)) return null;
  return given.map((item: unknown, index) => {
    const row = index + 1;
    if (typeof item !== 'object' || item === null || Array.isArray(item))
      return { row, detail: 'is no object' };
    return { row, cells: new Cells(item as Readonly<Record<string, unknown>>) };
  });
}

/** Columns of text that people write, which is taken as it is. */
const freeTexts: ReadonlySet<string> = new Set(['notes']);

/**
 * The cells of a row, and of these columns alone where they are named. White space around a cell is dropped, and an
 * empty cell counts as not sent.
 */
class Cells implements Readable {
  readonly #given: Readonly<Record<string, unknown>>;
  readonly #columns: ReadonlySet<string> | null;

  constructor(given: Readonly<Record<string, unknown>>, columns: ReadonlySet<string> | null = null) {
    this.#given = given;
    this.#columns = columns;
  }

  get(name: string): unknown {
    const given = Object.hasOwn(this.#given, name) ? this.#given[name] : undefined;
    const value = typeof given === 'string' && !freeTexts.has(name) ? given.trim() : given;
    return value === null || value === '' ? undefined : value;
  }

  keys(): Iterable<string> {
    const isSent = (name: string): boolean =>
      this.#columns?.has(name) !== false && this.get(name) !== undefined;
    return Object.keys(this.#given).filter(isSent);
  }
}

function readRows<Values>(rows: readonly RawRow[], fields: ParameterSet<Values>): ReadRows<Values> {
  const read: (Values & { row: number })[] = [];
  const rejected: RejectedRow[] = [];
  for (const given of rows) {
    const { row } = given;
    if ('detail' in given) {
      rejected.push({ row, code: 'malformed', detail: `The row ${given.detail}.` });
      continue;
    }
    const parsed = fields.read(given.cells);
    if (parsed.ok) read.push({ ...parsed.values, row });
    else rejected.push(...parsed.faults.map((fault) => rejectedFor(row, fault)));
  }
  return { read, rejected };
}

/** A row has no member for the parameter: most details begin with it, and here it is told, too. */
function rejectedFor(row: number, { parameter, code, detail }: ParameterFault): RejectedRow {
  return { row, code, detail: code === 'unknown' ? `There is no parameter ${parameter}.` : detail };
}

/** How rows are imported: all or none, or only tried. */
export type ImportOptions = { atomic: boolean; dryRun: boolean };

export const importShape: { atomic: z.ZodType<boolean>; dry_run: z.ZodType<boolean> } = {
  atomic: orDefault(boolean, false),
  dry_run: orDefault(boolean, false),
};

/** The rows of an import; `complete` makes a row of what was read, or says what it lacks. */
export function importRows<Values, Row extends { row: number }>(
  { read, rejected }: ReadRows<Values>,
  { atomic: isAtomic, dryRun: isDryRun }: ImportOptions,
  complete: (values: Values & { row: number }) => Row | RejectedRow,
): ImportRows<Row> {
  const completed = read.map(complete);
  return {
    rows: completed.filter((row): row is Row => !isRejected(row)),
    rejected: [...rejected, ...completed.filter(isRejected)],
    isAtomic,
    isDryRun,
  };
}

function isRejected(row: { row: number }): row is RejectedRow {
  return 'code' in row;
}

const rejectedRow: z.ZodType<RejectedRow> = z
  .object({ row: z.int(), code: z.string(), detail: z.string() })
  .meta({ id: 'RejectedRow' });

export const importReport: z.ZodType<ImportReport> = z
  .object({ imported: z.int(), unchanged: z.int(), rejected: z.array(rejectedRow) })
  .meta({ id: 'ImportReport' });
