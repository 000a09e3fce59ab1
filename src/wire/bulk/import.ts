import { z } from 'zod';
import type { ParameterFault } from '../../domain/problem/problem.ts';
import type { ImportRows, RejectedRow } from '../../service/authority/import.ts';
import { type CsvRow, findMiswritten } from './csv.ts';
import { boolean, instantText, type ParameterSet, type ParameterSource } from '../parameters.ts';
import { parseDatetime } from '../../domain/time.ts';

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

type RawRow = { row: number } & ({ cells: ParameterSource } | { detail: string });

/** A parameter that is a list of rows; an error in a row rejects only this row. */
export function rowsOf<Values>(fields: ParameterSet<Values>) {
  const columns = new Set(Object.keys(fields.schema.shape));
  return z.unknown().transform((input, { issues }): ReadRows<Values> => {
    const refuse = (message: string): never => {
      issues.push({ code: 'custom', input, message });
      return z.NEVER;
    };
    const [miswritten] = input instanceof CsvRows ? findMiswritten(input.header, columns) : [];
    if (miswritten !== undefined) {
      const { theirs, ours } = miswritten;
      return refuse(`malformed: must call the column ${ours}, not ${theirs}`);
    }
    const rows = input instanceof CsvRows ? fromCsv(input, columns) : fromJson(input);
    if (rows === null) return refuse('not_a_list: must be a list of objects');
    if (rows.length > maximumRows) return refuse(`too_long: must have at most ${maximumRows} rows`);
    return readRows(rows, fields);
  });
}

/** The rows for the OpenAPI document; `rowsOf` reads them. */
export function describedRows({ schema }: ParameterSet<unknown>): z.ZodType {
  return z.array(schema).max(maximumRows);
}

/** Other columns of a file are ignored: stores export many. */
function fromCsv({ rows }: CsvRows, columns: ReadonlySet<string>): RawRow[] {
  return rows.map((input) => {
    if ('detail' in input) return { row: input.line, detail: input.detail };
    return { row: input.line, cells: new Cells(input.cells, columns) };
  });
}

function fromJson(input: unknown): RawRow[] | null {
  if (!Array.isArray(input)) return null;
  return input.map((item: unknown, index) => {
    const row = index + 1;
    if (typeof item !== 'object' || item === null || Array.isArray(item))
      return { row, detail: 'is not an object' };
    return { row, cells: new Cells(item as Readonly<Record<string, unknown>>) };
  });
}

/** Columns with free text, which is not trimmed. */
const freeTexts: ReadonlySet<string> = new Set(['notes']);

/**
 * The cells of a row, limited to `columns` if they are given. White space around a cell is removed, and an empty cell
 * counts as not sent.
 */
class Cells implements ParameterSource {
  readonly #input: Readonly<Record<string, unknown>>;
  readonly #columns: ReadonlySet<string> | null;

  constructor(input: Readonly<Record<string, unknown>>, columns: ReadonlySet<string> | null = null) {
    this.#input = input;
    this.#columns = columns;
  }

  get(name: string): unknown {
    const input = Object.hasOwn(this.#input, name) ? this.#input[name] : undefined;
    const value = typeof input === 'string' && !freeTexts.has(name) ? input.trim() : input;
    return value === null || value === '' ? undefined : value;
  }

  keys(): Iterable<string> {
    const isSent = (name: string): boolean =>
      this.#columns?.has(name) !== false && this.get(name) !== undefined;
    return Object.keys(this.#input).filter(isSent);
  }
}

function readRows<Values>(rows: readonly RawRow[], fields: ParameterSet<Values>): ReadRows<Values> {
  const read: (Values & { row: number })[] = [];
  const rejected: RejectedRow[] = [];
  for (const input of rows) {
    const { row } = input;
    if ('detail' in input) {
      rejected.push({ row, code: 'malformed', detail: `The row ${input.detail}.` });
      continue;
    }
    const parsed = fields.read(input.cells);
    if (parsed.ok) read.push({ ...parsed.values, row });
    else rejected.push(...parsed.faults.map((fault) => rejectedFor(row, fault)));
  }
  return { read, rejected };
}

/** A rejected row has no member for the parameter, so the detail must name it. */
function rejectedFor(row: number, { parameter, code, detail }: ParameterFault): RejectedRow {
  return { row, code, detail: code === 'unknown' ? `There is no parameter ${parameter}.` : detail };
}

/** `atomic`: imports all rows or none. `dryRun`: checks the rows and imports none. */
export type ImportOptions = { atomic: boolean; dryRun: boolean };

export const importShape = { atomic: boolean.prefault(false), dry_run: boolean.prefault(false) };

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
 * Types of cells: they also accept the notation of other stores.
 */

const states: ReadonlyMap<string, boolean> = new Map([
  ...['true', 'yes', '1'].map((word): [string, boolean] => [word, true]),
  ...['false', 'no', '0'].map((word): [string, boolean] => [word, false]),
]);

/** `true` or `false`, `yes` or `no`, `1` or `0`, in any letter case. */
export const stateCell = z.preprocess(
  (input) => states.get(String(input).toLowerCase()),
  z.boolean('not_a_boolean: must be true or false, yes or no, 1 or 0'),
);

/** An instant of an import: an RFC 3339 datetime, or one without its zone, which is UTC, or a date. As epoch ms. */
function instantOf(timeOfDate: string) {
  return instantText(
    (input) => parseDatetime(input) ?? parseDatetime(withTime(input, timeOfDate)),
    'not_a_datetime: must be a date or an RFC 3339 datetime',
    { pattern: String.raw`^\d{4}-\d\d-\d\d` },
  );
}

function withTime(input: string, timeOfDate: string): string {
  return /^\d{4}-\d{2}-\d{2}$/.test(input) ? `${input}T${timeOfDate}Z` : `${input}Z`;
}

/** A date is the start of that day. */
export const instantCell = instantOf('00:00:00');

/** A date is the last second of that day. */
export const endCell = instantOf('23:59:59');

/** A long number that a spreadsheet rounded (`1.9E+18`), a formula error (`#NAME?`), or a column too narrow (`###`). */
const damaged =
  /^(?:\d(?:[.,]\d+)?E\+\d{2,3}|#(?:NAME\?|VALUE!|REF!|DIV\/0!|NUM!|NULL!|N\/A|SPILL!|CALC!)|#{2,})$/i;

/** Refuses text that a spreadsheet has replaced. */
export function undamaged<Value extends string | null>(text: z.ZodType<Value>): z.ZodType<Value> {
  return text.refine((input) => input === null || !damaged.test(input), {
    error: ({ input }) =>
      `malformed: is ${String(input).slice(0, 32)}, which a spreadsheet writes in place of the text: format the column as text and fill it again`,
  });
}
