import { hash } from 'node:crypto';
import type { Page } from '../../domain/page.ts';
import type { Names } from './names.ts';

/** A value of a parameter. */
export type SqlValue = string | number | boolean | null | readonly (string | null)[];

/** A statement that each connection prepares once, under a name that no other text has. */
export type Statement = { readonly name: string; readonly text: string };

/** A statement that reads rows by their keys, its only value; `key`: under which name each row has its own. */
export type Lookup = Statement & { readonly key: string };

/** The time of the database, in epoch ms. */
export const epochMs = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/** A statement with its values. */
export type BoundStatement = { readonly statement: Statement; readonly values: readonly SqlValue[] };

/** What was selected or returned. */
export type Row = Readonly<Record<string, unknown>>;

/** Runs the statements of tables: a connection in a transaction, or, for reads alone, any connection. */
export interface Source {
  readonly names: Names;
  /** Runs a statement and waits for its rows. */
  rows(statement: Statement, values: readonly SqlValue[]): Promise<readonly Row[]>;
  /** Runs a statement that takes no time, such as a read by a key, and waits for its first row. */
  row(statement: Statement, values: readonly SqlValue[]): Promise<Row | undefined>;
  /** Reads the row with a key; what many ask for at once may be read together. */
  lookUp(statement: Lookup, key: string): Promise<Row | undefined>;
}

/** A source in a transaction. */
export interface WritingSource extends Source {
  /**
   * Sends a statement without waiting for its answer: where it fails, so does whatever is asked for next, or the
   * commit. A write that decides nothing costs no round trip.
   */
  send(statement: Statement, values: readonly SqlValue[]): void;
}

/** Names a statement after its text, so that the same name is the same statement also behind a pooler. */
export function statementOf(text: string): Statement {
  return { name: `latchkey_${hash('sha256', text).slice(0, 24)}`, text };
}

/** What the driver is asked; behind a pooler the next query may go where nothing was prepared. */
export function queryOf(
  { name, text }: Statement,
  values: readonly SqlValue[],
  isBehindPooler: boolean,
): { name: string; text: string; values: SqlValue[] } {
  return { name: isBehindPooler ? '' : name, text, values: [...values] };
}

/** A reading statement. */
export interface Query<Value> {
  /** For what takes no time: other reads may wait for it. */
  first(...values: SqlValue[]): Promise<Value | null>;
  all(...values: SqlValue[]): Promise<Value[]>;
}

/**
 * Makes a reading statement. `from` names the shape of its rows: the schema types and checks its columns, so that a
 * row of another shape cannot have been written.
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

/** Makes the read of a row by its key; the text compares that with `ANY ($1)`, and selects it as `key`. */
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

/** Makes a writing statement whose answer nobody waits for. */
export function prepareWrite(source: WritingSource, text: string): (...values: SqlValue[]) => void {
  const statement = statementOf(text);
  return (...values) => source.send(statement, values);
}

/** A condition of a list, given the places of its values; it is left out where there is no first value. */
export type Condition = readonly [
  condition: (...places: string[]) => string,
  ...values: (SqlValue | undefined)[],
];

/** The condition that all of those with values are, and these; `places` before them are taken. */
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

/** A list whose conditions are only known when it is asked for, and how long it is. */
export interface FilteredList<Value> {
  list(conditions: readonly Condition[], page: Page): Promise<Value[]>;
  count(conditions: readonly Condition[]): Promise<number>;
}

/** What a list is made of; `key`: the columns by which it is sorted, `isLatestFirst`: from the greatest to the least. */
type ListParts = { select: string; from: string; key: readonly string[]; isLatestFirst?: boolean };

/** Makes a list of what `select` gives of `from`, in the order of its key. */
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
