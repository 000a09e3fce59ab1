import { hash } from 'node:crypto';
import type { Page } from '../../domain/page.ts';
import type { Names } from './names.ts';

export type SqlValue = string | number | boolean | null | readonly (string | null)[];

/** A statement that each connection prepares once. The name is unique for the text. */
export type Statement = { readonly name: string; readonly text: string };

/** A statement that reads rows by an array of keys. `key`: the column of the rows that has the key. */
export type Lookup = Statement & { readonly key: string };

/** The time of the database, in epoch ms. */
export const epochMs = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

export type BoundStatement = { readonly statement: Statement; readonly values: readonly SqlValue[] };

export type Row = Readonly<Record<string, unknown>>;

/** Runs the statements of tables: on a connection in a transaction, or, for reads only, on any connection. */
export interface Source {
  readonly names: Names;
  /** Runs a statement and waits for its rows. */
  rows(statement: Statement, values: readonly SqlValue[]): Promise<readonly Row[]>;
  /** Runs a fast statement, such as a read by a key, and waits for its first row. */
  row(statement: Statement, values: readonly SqlValue[]): Promise<Row | undefined>;
  /** Reads the row with a key. Concurrent reads may be batched. */
  lookUp(statement: Lookup, key: string): Promise<Row | undefined>;
}

/** A source in a transaction. */
export interface WritingSource extends Source {
  /**
   * Sends a statement without waiting for its response, to save a round trip. If the statement fails, the next statement
   * or the commit fails.
   */
  send(statement: Statement, values: readonly SqlValue[]): void;
}

/** The name is a hash of the text, so that it means the same statement behind a pooler, too. */
export function statementOf(text: string): Statement {
  return { name: `latchkey_${hash('sha256', text).slice(0, 24)}`, text };
}

/** The driver's query. Behind a pooler it has no name, because the next connection may not have the prepared statement. */
export function queryOf(
  { name, text }: Statement,
  values: readonly SqlValue[],
  isBehindPooler: boolean,
): { name: string; text: string; values: SqlValue[] } {
  return { name: isBehindPooler ? '' : name, text, values: [...values] };
}

export interface Query<Value> {
  /** Only for fast reads: other reads may wait for it. */
  first(...values: SqlValue[]): Promise<Value | null>;
  all(...values: SqlValue[]): Promise<Value[]>;
}

/**
 * The parameter of `from` is the type of the rows. No runtime check is needed, because the schema types and checks the
 * columns.
 */
export function prepareQuery<Value>(source: Source, text: string, from: (row: never) => Value): Query<Value> {
  const statement = statementOf(text);
  return {
    async first(...values) {
      const row = await source.row(statement, values);
      return row === undefined ? null : from(row as never);
    },
    async all(...values) {
      const rows = await source.rows(statement, values);
      return rows.map((row) => from(row as never));
    },
  };
}

/** Reads a row by its key. The text compares the key with `ANY ($1)` and selects it as `key`. */
export function prepareLookup<Value>(
  source: Source,
  text: string,
  { key, from }: { key: string; from: (row: never) => Value },
): (key: string) => Promise<Value | null> {
  const statement = { ...statementOf(text), key };
  return async (asked) => {
    const row = await source.lookUp(statement, asked);
    return row === undefined ? null : from(row as never);
  };
}

/** A writing statement, which is sent without waiting for its response. */
export function prepareWrite(source: WritingSource, text: string): (...values: SqlValue[]) => void {
  const statement = statementOf(text);
  return (...values) => source.send(statement, values);
}

/** A condition of a list, from the placeholders of its values. It is left out if the first value is undefined. */
export type Condition = readonly [
  condition: (...places: string[]) => string,
  ...values: (SqlValue | undefined)[],
];

/** Joins the conditions with AND. `places`: the number of placeholders that are in use already. */
export function where(conditions: readonly Condition[], places = 0): { sql: string; values: SqlValue[] } {
  const terms: string[] = [];
  const values: SqlValue[] = [];
  for (const [condition, ...given] of conditions) {
    const [first] = given;
    if (first === undefined) continue;
    const present = given.filter((value) => value !== undefined);
    terms.push(condition(...present.map((_, index) => `$${places + values.length + index + 1}`)));
    values.push(...present);
  }
  return { sql: terms.length === 0 ? 'true' : terms.join(' AND '), values };
}

/** A list with conditions that are known only at the call. */
export interface FilteredList<Value> {
  list(conditions: readonly Condition[], page: Page): Promise<Value[]>;
  count(conditions: readonly Condition[]): Promise<number>;
}

/** `key`: the columns that sort the list; `isLatestFirst`: in descending order. */
type ListParts = { select: string; from: string; key: readonly string[]; isLatestFirst?: boolean };

export function prepareList<Value>(
  source: Source,
  { select, from, key, isLatestFirst = false }: ListParts,
  value: (row: never) => Value,
): FilteredList<Value> {
  const by = key.map((column) => (isLatestFirst ? `${column} DESC` : column)).join(', ');
  return {
    async list(conditions, { limit, offset, cursor = [] }) {
      const behind: Condition = [
        (...places) => `(${key.join(', ')}) ${isLatestFirst ? '<' : '>'} (${places.join(', ')})`,
        ...cursor,
      ];
      const { sql, values } = where([...conditions, behind], 2);
      const text = `SELECT ${select} FROM ${from} WHERE ${sql} ORDER BY ${by} LIMIT $1::bigint OFFSET $2::bigint`;
      const rows = await source.rows(statementOf(text), [limit, offset, ...values]);
      return rows.map((row) => value(row as never));
    },
    async count(conditions) {
      const { sql, values } = where(conditions);
      const text = `SELECT count(*) AS count FROM ${from} WHERE ${sql}`;
      const [row] = await source.rows(statementOf(text), values);
      return Number(row?.['count'] ?? 0);
    },
  };
}
