import { z } from 'zod';
import type { ParameterFault } from '../../domain/problem/problem.ts';
import type { ImportRows, RejectedRow } from '../../service/authority/import.ts';
import { type CsvRow, findMiswritten } from './csv.ts';
import { boolean, kind, orDefault, refuse, refined } from '../types.ts';
import type { ParameterSet, Readable } from '../parameters.ts';
import { isInstant, parseDatetime } from '../../domain/datetime.ts';

/** The maximum number of rows in one request. */
export const maximumRows = 10_000;

/** Rows of CSV; the rows of JSON are a list of objects. */
export class CsvRows {
  readonly header: readonly string[];
  readonly rows: readonly CsvRow[];

  constructor(header: readonly string[], rows: readonly CsvRow[]) {
    this.header = header;
    this.rows = rows;
  }
}

/** The rows of an import: each with its number, starting at 1, or for CSV its line. */
export type ReadRows<Values> = {
  read: readonly (Values & { row: number })[];
  rejected: readonly RejectedRow[];
};

type RawRow = { row: number } & ({ cells: Readable } | { detail: string });

/** A parameter that is a list of rows; an error in a row rejects only this row. */
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

/** The rows for the OpenAPI document; `rowsOf` reads them. */
export function describedRows({ schema }: ParameterSet<unknown>): z.ZodType {
  return z.array(schema).max(maximumRows);
}

/** Other columns of a file are ignored: stores export many. */
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

/** Columns with free text, which is not trimmed. */
const freeTexts: ReadonlySet<string> = new Set(['notes']);

/**
 * The cells of a row, limited to `columns` if they are given. White space around a cell is removed, and an empty cell
 * counts as not sent.
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

/** A rejected row has no member for the parameter; most details begin with its name, and this one names it as well. */
function rejectedFor(row: number, { parameter, code, detail }: ParameterFault): RejectedRow {
  return { row, code, detail: code === 'unknown' ? `There is no parameter ${parameter}.` : detail };
}

/** Whether all rows are imported or none, and whether the import is only tried. */
export type ImportOptions = { atomic: boolean; dryRun: boolean };

export const importShape: { atomic: z.ZodType<boolean>; dry_run: z.ZodType<boolean> } = {
  atomic: orDefault(boolean, false),
  dry_run: orDefault(boolean, false),
};

/** The rows of an import; `complete` turns the values of a row into a row, or rejects it. */
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

const rejectedRow = z
  .object({ row: z.int(), code: z.string(), detail: z.string() })
  .meta({ id: 'RejectedRow' });

export const importReport = z
  .object({ imported: z.int(), unchanged: z.int(), rejected: z.array(rejectedRow) })
  .meta({ id: 'ImportReport' });

/*
 * Parameters of imported rows that are read as stores export them, and not only as this interface writes
 * them.
 */

const states: ReadonlyMap<string, boolean> = new Map([
  ...['true', 'yes', '1'].map((word): [string, boolean] => [word, true]),
  ...['false', 'no', '0'].map((word): [string, boolean] => [word, false]),
]);

/** `true` or `false`, `yes` or `no`, `1` or `0`, in any letter case. */
export const stateCell: z.ZodType<boolean> = kind(
  // Cells of CSV are text.
  { type: 'boolean' },
  (given, issues) =>
    states.get(String(given).toLowerCase()) ??
    refuse(issues, 'not_a_boolean', 'must be true or false, yes or no, 1 or 0'),
);

const dated = /^\d{4}-\d\d-\d\d/;

/** An instant of an import: an RFC 3339 datetime, or one without its zone, which is UTC, or a date. As epoch ms. */
function instantOf(timeOfDate: string): z.ZodType<number> {
  return kind({ type: 'string', pattern: dated.source }, (given, issues) => {
    const instant =
      typeof given === 'string' ? (parseDatetime(given) ?? parseDatetime(withTime(given, timeOfDate))) : null;
    if (instant !== null && isInstant(instant)) return instant;
    return refuse(issues, 'not_a_datetime', 'must be a date or an RFC 3339 datetime');
  });
}

function withTime(given: string, timeOfDate: string): string {
  return /^\d{4}-\d{2}-\d{2}$/.test(given) ? `${given}T${timeOfDate}Z` : `${given}Z`;
}

/** A date is the start of that day. */
export const instantCell: z.ZodType<number> = instantOf('00:00:00');

/** A date is the last second of that day. */
export const endCell: z.ZodType<number> = instantOf('23:59:59');

/** A long number that a spreadsheet rounds (`1.9E+18`), an error of a formula (`#NAME?`), or a column too narrow. */
const damaged =
  /^(?:\d(?:[.,]\d+)?E\+\d{2,3}|#(?:NAME\?|VALUE!|REF!|DIV\/0!|NUM!|NULL!|N\/A|SPILL!|CALC!)|#{2,})$/i;

/** Text that names a thing, as long as no spreadsheet has written something else in its place. */
export function undamaged<Value extends string | null>(text: z.ZodType<Value>): z.ZodType<Value> {
  return refined(text, {}, (given, issues) =>
    given !== null && damaged.test(given)
      ? refuse(
          issues,
          'malformed',
          `is ${given.slice(0, 32)}, which a spreadsheet writes in place of the text: format the column as text and fill it again`,
        )
      : given,
  );
}
