import { hash } from 'node:crypto';
import type { Tenant } from '../../domain/access/principal.ts';
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
  readonly first: (...values: SqlValue[]) => Promise<Value | null>;
  readonly all: (...values: SqlValue[]) => Promise<Value[]>;
}

/** Prepares the statements of tables. */
export interface Prepare {
  readonly names: Names;
  /**
   * `from` makes the value of a row; default: the row. No runtime check is needed, because the schema types and checks
   * the columns.
   */
  query<Value>(text: string, from?: (row: never) => Value): Query<Value>;
  /** A query of a single column. */
  column<Value>(text: string): Query<Value>;
  /** Reads a row by its key. The text compares the key with `ANY ($1)` and selects it as `key`. */
  lookup<Value>(text: string, key: string): (key: string) => Promise<Value | null>;
  list<Value>(parts: ListParts, from?: (row: never) => Value): FilteredList<Value>;
}

export interface WritingPrepare extends Prepare {
  /** A writing statement, which is sent without waiting for its response. */
  write(text: string): (...values: SqlValue[]) => void;
  /** A writing statement that returns the number of the rows that it has changed. */
  changeCount(text: string): (...values: SqlValue[]) => Promise<number>;
  /** Runs a statement and waits for its rows. */
  rows: Source['rows'];
}

export function prepareOn(source: Source): Prepare {
  const query = <Value>(text: string, from: (row: never) => Value = (row) => row): Query<Value> => {
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
  };
  return {
    names: source.names,
    query,
    column: <Value>(text: string) => query(text, (row: Row) => Object.values(row)[0] as Value),
    lookup<Value>(text: string, key: string) {
      const statement = { ...statementOf(text), key };
      return async (value) => ((await source.lookUp(statement, value)) ?? null) as Value | null;
    },
    list: (parts, from) => prepareList(source, parts, from),
  };
}

export function prepareWritesOn(source: WritingSource): WritingPrepare {
  const prepare = prepareOn(source);
  return {
    ...prepare,
    write(text) {
      const statement = statementOf(text);
      return (...values) => source.send(statement, values);
    },
    changeCount(text) {
      const counting = prepare.column<number>(
        `WITH changed AS (${text} RETURNING 1) SELECT count(*) FROM changed`,
      );
      return async (...values) => (await counting.first(...values)) ?? 0;
    },
    rows: (statement, values) => source.rows(statement, values),
  };
}

/** A condition of a list, from the placeholders of its values. It is left out if the first value is undefined. */
export type Condition = readonly [
  condition: (...places: string[]) => string,
  ...values: (SqlValue | undefined)[],
];

/** Joins the conditions with AND. `places`: the number of placeholders that are in use already. */
function where(conditions: readonly Condition[], places = 0): { sql: string; values: SqlValue[] } {
  const terms: string[] = [];
  const values: SqlValue[] = [];
  for (const [condition, ...optional] of conditions) {
    const [first] = optional;
    if (first === undefined) continue;
    const present = optional.filter((value) => value !== undefined);
    terms.push(condition(...present.map((_, index) => `$${places + values.length + index + 1}`)));
    values.push(...present);
  }
  return { sql: terms.length === 0 ? 'true' : terms.join(' AND '), values };
}

/** A list with conditions that are known only at the call. */
interface FilteredList<Value> {
  list(conditions: readonly Condition[], page: Page): Promise<Value[]>;
  count(conditions: readonly Condition[]): Promise<number>;
}

/** `key`: the columns that sort the list; `isLatestFirst`: in descending order. */
type ListParts = { select: string; from: string; key: readonly string[]; isLatestFirst?: boolean };

function prepareList<Value>(
  source: Source,
  { select, from, key, isLatestFirst = false }: ListParts,
  value: (row: never) => Value = (row) => row,
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

/** Restricts a list to the account of a tenant; undefined: no restriction. */
export function ofAccount(tenant: Tenant | undefined): Condition {
  return [(place) => `account_id = ${place}`, tenant?.accountId];
}

/** Restricts licenses to a tenant. */
export function ofTenant({ license, product }: Names, tenant: Tenant | undefined): Condition[] {
  const ofItsAccount: Condition = [
    (place) => `EXISTS (SELECT 1 FROM ${product} AS reached
      WHERE reached.product_key = ${license}.product_key AND reached.account_id = ${place})`,
    tenant?.accountId,
  ];
  return [ofItsAccount, [(place) => `${license}.product_key = ${place}`, tenant?.productKey ?? undefined]];
}
