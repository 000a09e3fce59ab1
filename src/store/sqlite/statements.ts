import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { Page, PageKey } from '../../domain/page.ts';

const namedParameter = /:(\w+)/g;

/** A SELECT, which is prepared at its first use. */
export interface Query<Value> {
  readonly first: (...parameters: SQLInputValue[]) => Value | null;
  readonly all: (...parameters: SQLInputValue[]) => Value[];
}

/** Prepares the statements of the tables. */
export interface Prepare {
  /**
   * `from` makes the value of a row; default: the row. No runtime check is needed, because the tables are STRICT and
   * check their columns.
   */
  query: <Value>(sql: string, from?: (row: never) => Value) => Query<Value>;
  /** A SELECT of a single column. */
  column: <Value>(sql: string) => Query<Value>;
  /** A SELECT of a single number. */
  count: (sql: string) => (...parameters: SQLInputValue[]) => number;
  /**
   * A writing statement with named parameters, which are members of the argument. Other members are ignored. Returns the
   * number of changed rows and the last row id.
   */
  change: (sql: string) => (parameters: Parameters) => { changes: number; rowId: number };
  /** An INSERT with positional parameters, which returns whether it added a row. */
  addition: (sql: string) => (...parameters: SQLInputValue[]) => boolean;
}

type Parameters = Readonly<Record<string, SQLInputValue | boolean>>;

export function prepareOn(database: DatabaseSync): Prepare {
  const query = <Value>(sql: string, from: (row: never) => Value = (row) => row): Query<Value> =>
    prepareQuery(database, sql, from);
  const column = <Value>(sql: string): Query<Value> =>
    query(sql, (row: Row) => Object.values(row)[0] as Value);
  return {
    query,
    column,
    count(sql) {
      const counting = column<number>(sql);
      return (...parameters) => counting.first(...parameters) ?? 0;
    },
    change: (sql) => prepareChange(database, sql),
    addition(sql) {
      const statement = lazy(() => database.prepare(sql));
      return (...parameters) => Number(statement().run(...parameters).changes) > 0;
    },
  };
}

/** Preparing every statement at the start would take time and memory, and most are not used for a long time. */
function lazy<Prepared>(prepare: () => Prepared): () => Prepared {
  let prepared: Prepared | null = null;
  return () => (prepared ??= prepare());
}

function prepareQuery<Value>(database: DatabaseSync, sql: string, from: (row: never) => Value): Query<Value> {
  const query = lazy(() => prepareRows(database, sql));
  return {
    first(...parameters) {
      const { statement, rowOf } = query();
      const values = statement.get(...parameters);
      return values === undefined ? null : from(rowOf(values) as never);
    },
    all(...parameters) {
      const { statement, rowOf } = query();
      return statement.all(...parameters).map((values) => from(rowOf(values) as never));
    },
  };
}

type Row = Record<string, SQLOutputValue>;

/**
 * Reads rows as arrays, and builds objects from them. The objects that Node builds have a different shape for each row,
 * which is slow.
 */
function prepareRows(
  database: DatabaseSync,
  sql: string,
): { statement: StatementSync; rowOf: (values: Row) => Row } {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  const names = statement.columns().map(({ name }) => name);
  const rowOf = (values: Row): Row => {
    const row: Row = {};
    for (const [index, name] of names.entries()) row[name] = values[index] ?? null;
    return row;
  };
  return { statement, rowOf };
}

function prepareChange(database: DatabaseSync, sql: string): ReturnType<Prepare['change']> {
  // Bind by position: SQLite looks a named or numbered parameter up for each value.
  const names = Array.from(sql.matchAll(namedParameter), ([, name = '']) => name);
  const statement = lazy(() => database.prepare(sql.replaceAll(namedParameter, '?')));
  return (parameters) => {
    const values = names.map((name) => {
      const value = parameters[name];
      if (value === undefined) throw new Error(`the parameter ${name} is missing`);
      return typeof value === 'boolean' ? bit(value) : value;
    });
    const { changes, lastInsertRowid } = statement().run(...values);
    return { changes: Number(changes), rowId: Number(lastInsertRowid) };
  };
}

/** A boolean in SQLite. */
export type Bit = 0 | 1;

export function bit(truth: boolean): Bit {
  return truth ? 1 : 0;
}

/** The key after which a page starts, in a list sorted by text. No key is empty. */
export function afterText({ cursor }: Page): string {
  return String(cursor?.[0] ?? '');
}

/** The key after which a page starts, in a list sorted by a number. */
export function afterNumber({ cursor }: Page): number {
  return Number(cursor?.[0] ?? Number.MIN_SAFE_INTEGER);
}

/**
 * The key below which a page starts, in a list sorted by instant and id, the latest first. The filter and the cursor make
 * a single bound, because SQLite searches an index by one bound only. `before`: the first instant that is not listed;
 * `least`: less than any id.
 */
export function beforeInstant<Id extends string | number>(
  cursor: PageKey | undefined,
  before: number,
  least: Id,
): [at: number, id: Id] {
  const [at, id] = (cursor ?? [before, least]) as [number, Id];
  return at < before ? [at, id] : [before, least];
}

/** Restricts a list to an account, the first parameter; null: no restriction. */
export const ofAccount = '(?1 IS NULL OR account_id = ?1)';

/** Whether the product of a license belongs to an account; `account`: the number of the parameter. */
export function soldBy(account: number): string {
  return `EXISTS (SELECT 1 FROM product WHERE product.product_key = license.product_key
    AND product.account_id = ?${account})`;
}

/** Restricts licenses to a tenant; `account`, `product`: the numbers of the parameters. */
export function ofTenant(account: number, product: number): string {
  return `(?${account} IS NULL OR ${soldBy(account)}) AND (?${product} IS NULL OR product_key = ?${product})`;
}
