import { z } from 'zod';
import type { ParameterFault } from '../../../domain/problem/problem.ts';
import type { ImportReport, ImportRows, RejectedRow } from '../service/import.ts';
import { type CsvRow, findMiswritten } from '../../../wire/csv.ts';
import { boolean, instantText, type ParameterSet, type ParameterSource } from '../../../wire/parameters.ts';
import { parseDatetime } from '../../../domain/time.ts';
import { exampleMap, looksLikeState } from './mapping/column-names.ts';
import { MappingFault } from './mapping/mapping-fault.ts';

/** The columns of a header with a name that is not known. */
export function ignoredColumns(header: readonly string[], known: ReadonlySet<string>): string[] {
  return header.filter((name) => name !== '' && !known.has(name));
}

/** The maximum number of rows in one request. */
export const maximumRows = 10_000;

/** What the mapping of the columns of a CSV file has not imported (`mapping/columns.ts`). */
export interface NotMapped {
  readonly ignored: readonly string[];
  /** The ignored columns that need no `ignore`. */
  readonly dismissed: readonly string[];
  readonly withoutKey: number;
  readonly renewals: number;
}

/** Rows of CSV; the rows of JSON are a list of objects. */
export class CsvRows {
  readonly header: readonly string[];
  readonly rows: readonly CsvRow[];
  /** Null: the columns have the names of the import. */
  readonly notMapped: NotMapped | null;

  constructor(header: readonly string[], rows: readonly CsvRow[], notMapped: NotMapped | null = null) {
    this.header = header;
    this.rows = rows;
    this.notMapped = notMapped;
  }
}

/** The rows of an import: each with its number, starting at 1, or for CSV its line. */
export type ReadRows<Values> = {
  read: readonly (Values & { row: number })[];
  rejected: readonly RejectedRow[];
  /** The columns of CSV that are not imported. */
  ignored: readonly string[];
  notMapped?: NotMapped | null;
  /** The mapping of the columns is wrong. */
  fault?: MappingFault;
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
    if (input instanceof MappingFault) return { read: [], rejected: [], ignored: [], fault: input };
    const notMapped = input instanceof CsvRows ? input.notMapped : null;
    const isPlain = input instanceof CsvRows && notMapped === null;
    const [miswritten] = isPlain ? findMiswritten(input.header, columns) : [];
    if (miswritten !== undefined) {
      const { theirs, ours } = miswritten;
      return refuse(`malformed: must call the column ${ours}, not ${theirs}`);
    }
    const rows = input instanceof CsvRows ? fromCsv(input, columns) : fromJson(input);
    if (rows === null) return refuse('not_a_list: must be a list of objects');
    if (rows.length > maximumRows) return refuse(`too_long: must have at most ${maximumRows} rows`);
    const ignored = isPlain ? ignoredColumns(input.header, columns) : (notMapped?.ignored ?? []);
    return { ...readRows(rows, fields), ignored, notMapped };
  });
}

/** The rows for the OpenAPI document; `rowsOf` reads them. */
export function describedRows({ schema }: ParameterSet<unknown>): z.ZodType {
  return z.array(schema).max(maximumRows);
}

/**
 * Refuses CSV with a wrong mapping, or with an ignored column that looks like a state, because revoked keys would become
 * valid. The parameter `ignore` dismisses such columns.
 */
export function columnFaults(
  parameter: string,
  { ignored, notMapped, fault }: Omit<ReadRows<unknown>, 'read' | 'rejected'> = { ignored: [] },
  ignore = '',
): ParameterFault[] {
  if (fault !== undefined) return [mappingFault(fault)];
  const dismissed = new Set(notMapped?.dismissed ?? ignore.split(','));
  const states = ignored.filter((name) => looksLikeState(name) && !dismissed.has(name));
  if (states.length === 0) return [];
  const named = states.join(', ').slice(0, 200);
  const example = exampleMap(states, parameter === 'coupons' ? ['end_date'] : ['expires_at', 'enabled']);
  const such = example === '' ? '' : `, such as ${example.slice(0, 200).toWellFormed()}`;
  const detail =
    `${parameter} has columns that look like states and would be ignored: ${named}. ` +
    'Without them, keys that were revoked would be valid. ' +
    `Map the columns with the parameter map${such}, or dismiss them with the parameter ignore.`;
  return [{ parameter, code: 'unknown', detail }];
}

/** The error of a wrong mapping, as one of a request. */
export function mappingFault({ parameter, given, message }: MappingFault): ParameterFault {
  return {
    parameter,
    code: 'malformed',
    detail: `${parameter} says ${given.slice(0, 200).toWellFormed()}: ${message.slice(0, 300).toWellFormed()}.`,
  };
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

/** Columns with free text, which is kept as it is. */
const freeTexts: ReadonlySet<string> = new Set(['notes', 'device_name']);

/**
 * What databases, programs and people write into a cell without a value: MySQL writes a date of zeros, others the first
 * instant of their calendar (the year 1 of Go and .NET, the year 1970 of Unix).
 */
const emptyCell =
  /^(?:|-|\\N|NULL|N\/A|(?:0000-00-00|0001-01-01|1970-01-01)(?:[T ]00:00(?::00(?:\.0+)?)?)?(?: ?(?:Z|UTC|GMT|[+-]00:?00))?)$/i;

/** Whether a cell has no value. */
export function isEmptyCell(cell: string): boolean {
  return emptyCell.test(cell.trim());
}

/**
 * The cells of a row, limited to `columns` if they are given. White space around a cell is removed, and a cell without a
 * value counts as not sent.
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
    if (input === null || input === '') return undefined;
    if (typeof input !== 'string' || freeTexts.has(name)) return input;
    return isEmptyCell(input) ? undefined : input.trim();
  }

  keys(): Iterable<string> {
    const isSent = (name: string): boolean =>
      this.#columns?.has(name) !== false && this.get(name) !== undefined;
    return Object.keys(this.#input).filter(isSent);
  }
}

function readRows<Values>(
  rows: readonly RawRow[],
  fields: ParameterSet<Values>,
): Pick<ReadRows<Values>, 'read' | 'rejected'> {
  const codes = stateColumns.filter((name) =>
    rows.some((input) => 'cells' in input && isCode(input.cells.get(name))),
  );
  const read: (Values & { row: number })[] = [];
  const rejected: RejectedRow[] = [];
  for (const input of rows) {
    const { row } = input;
    if ('detail' in input) {
      rejected.push({ row, code: 'malformed', detail: `The row ${input.detail}.` });
      continue;
    }
    const coded = codes.filter((name) => isNumber(input.cells.get(name)));
    if (coded.length > 0) {
      rejected.push(...coded.map((name) => ({ row, ...codedState(name) })));
      continue;
    }
    const parsed = fields.read(input.cells);
    if (parsed.ok) read.push({ ...parsed.values, row });
    else rejected.push(...parsed.faults.map((fault) => rejectedFor(row, fault, input.cells)));
  }
  return { read, rejected };
}

/** Columns of type `stateCell`. */
const stateColumns = ['enabled', 'refunded'];

function isNumber(cell: unknown): boolean {
  return /^\d{1,16}$/.test(String(cell));
}

/** Whether a cell is a number other than 0 and 1. */
function isCode(cell: unknown): boolean {
  return isNumber(cell) && Number(cell) > 1;
}

/** In a column with codes such as 1 to 4, a 1 does not mean yes. */
function codedState(name: string): Omit<RejectedRow, 'row'> {
  const detail = `${name} must be true or false: this column also has numbers other than 0 and 1, so its numbers are codes.`;
  return { code: 'not_a_boolean', detail };
}

/** A rejected row has no member for the parameter, so the detail must name it. */
function rejectedFor(
  row: number,
  { parameter, code, detail }: ParameterFault,
  cells: ParameterSource,
): RejectedRow {
  if (code === 'unknown') return { row, code, detail: `There is no parameter ${parameter}.` };
  const cell = parameter === 'license_key' ? undefined : cells.get(parameter);
  const value = String(cell).slice(0, 64).toWellFormed();
  return { row, code, detail, ...(cell !== undefined && !detail.includes(value) && { value }) };
}

/** `atomic`: imports all rows or none. `dryRun`: checks the rows and imports none. */
export type ImportOptions = { atomic: boolean; dryRun: boolean };

export const importShape = {
  atomic: boolean.prefault(false),
  dry_run: boolean.prefault(false),
};

/** The rows of an import; `complete` turns the values of a row into a row, or rejects it. */
export function importRows<Values, Row extends { row: number }>(
  { read, rejected }: Pick<ReadRows<Values>, 'read' | 'rejected'>,
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
  .object({
    row: z.int(),
    code: z.string(),
    detail: z.string(),
    value: z
      .string()
      .optional()
      .describe('The beginning of the cell that is wrong, except of a license key.'),
  })
  .meta({ id: 'RejectedRow' });

export const importReport = z
  .object({
    imported: z.int(),
    unchanged: z.int(),
    ignored: z.array(z.string()),
    rejected: z.array(rejectedRow),
    without_key: z.int().optional().describe('With `from`: rows that have no license key and are left out.'),
    renewals: z
      .int()
      .optional()
      .describe('With `from`: rows that renew the key of another row and are left out.'),
  })
  .meta({ id: 'ImportReport' });

/** The report of an import: with the counts of a file whose columns were mapped. */
export function presentReport(
  report: ImportReport,
  { ignored, notMapped = null }: Pick<ReadRows<unknown>, 'ignored' | 'notMapped'>,
) {
  if (notMapped === null) return { ...report, ignored };
  const { withoutKey, renewals } = notMapped;
  return { ...report, ignored, without_key: withoutKey, renewals };
}

/*
 * Types of cells: they also accept the notation of other stores.
 */

const states: ReadonlyMap<string, boolean> = new Map([
  ...['true', 'yes', '1', 'wahr'].map((word): [string, boolean] => [word, true]),
  ...['false', 'no', '0', 'falsch'].map((word): [string, boolean] => [word, false]),
]);

/** Whether `stateCell` accepts a word in lower case. */
export function isStateWord(word: string): boolean {
  return states.has(word);
}

/** `true` or `false`, `yes` or `no`, `1` or `0`, in any letter case, and the words of a German spreadsheet. */
export const stateCell = z.preprocess(
  (input) => states.get(String(input).toLowerCase()),
  z.boolean('not_a_boolean: must be true or false, yes or no, 1 or 0'),
);

/**
 * An instant of an import, as epoch ms: an RFC 3339 datetime, or as databases write one, without seconds, with a zone such
 * as ` UTC` or `+0200`, without a zone, which is UTC, or without a time.
 */
function instantOf(timeOfDate: string) {
  return instantText(
    (input) => parseDatetime(input) ?? parseDatetime(withTime(input, timeOfDate)),
    'not_a_datetime: must be a date or an RFC 3339 datetime',
    { pattern: String.raw`^\d{4}-\d\d-\d\d` },
  );
}

const writtenInstant =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?)?(?: ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?$/i;

function withTime(input: string, timeOfDate: string): string {
  const [, day, minutes, seconds = ':00', zone = 'Z'] = writtenInstant.exec(input) ?? [];
  if (day === undefined) return '';
  const time = minutes === undefined ? timeOfDate : `${minutes}${seconds}`;
  const offset = /^([+-]\d\d):?(\d\d)?$/.exec(zone);
  return `${day}T${time}${offset === null ? 'Z' : `${offset[1]}:${offset[2] ?? '00'}`}`;
}

/** A date is the start of that day. */
export const instantCell = instantOf('00:00:00');

/** A date is the last second of that day. */
export const endCell = instantOf('23:59:59');

/** What people write in place of a date if there is no end. */
const noEnd = /^(?:none|never|lifetime|perpetual|unlimited|unbegrenzt|unbefristet|nie)$/i;

/** Whether a cell says that a license never ends. */
export function isNoEnd(cell: string): boolean {
  return noEnd.test(cell.trim());
}

/** The end of a license in whole seconds; null: it never ends. */
export const licenseEndCell = z.union(
  [
    z
      .string()
      .regex(noEnd)
      .transform(() => null),
    endCell.transform((epochMs) => Math.floor(epochMs / 1000) * 1000),
  ],
  'not_a_datetime: must be a date, an RFC 3339 datetime, or none',
);

/** A long number that a spreadsheet rounded (`1.9E+18`), a formula error (`#NAME?`), or a column too narrow (`###`). */
const damaged =
  /^(?:\d(?:[.,]\d+)?E\+\d{2,3}|#(?:NAME\?|VALUE!|REF!|DIV\/0!|NUM!|NULL!|N\/A|SPILL!|CALC!)|#{2,})$/i;

/** Refuses text that a spreadsheet has replaced. */
export function undamaged<Value extends string | null>(cell: z.ZodType<Value>): z.ZodType<Value> {
  return cell.refine((input) => input === null || !damaged.test(input), {
    error: ({ input }) =>
      `malformed: is ${String(input).slice(0, 32)}, which a spreadsheet writes in place of the text: format the column as text and fill it again`,
  });
}
