import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';

const namedParameter = /:(\w+)/g;

/** A SELECT, which is prepared at its first use. */
export interface Query<Value> {
  first(...parameters: SQLInputValue[]): Value | null;
  all(...parameters: SQLInputValue[]): Value[];
}

/** Preparing every statement at the start would take time and memory, and most are not used for a long time. */
function lazy<Prepared>(prepare: () => Prepared): () => Prepared {
  let prepared: Prepared | null = null;
  return () => (prepared ??= prepare());
}

/**
 * The parameter of `from` is the type of the rows. No runtime check is needed, because the tables are STRICT and check
 * their columns.
 */
export function prepareQuery<Value>(
  database: DatabaseSync,
  sql: string,
  from: (row: never) => Value,
): Query<Value> {
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

/** Prepares a statement that selects a single column `count`. */
export function prepareCount(
  database: DatabaseSync,
  sql: string,
): (...parameters: SQLInputValue[]) => number {
  const query = prepareQuery(database, sql, (row: { count: number }) => row.count);
  return (...parameters) => query.first(...parameters) ?? 0;
}

/** Prepares a writing statement with named parameters, which returns the number of changed rows and the last row id. */
export function prepareChange(
  database: DatabaseSync,
  sql: string,
): (parameters: Record<string, SQLInputValue>) => { changes: number; rowId: number } {
  // Bind by position: SQLite looks a named or numbered parameter up for each value.
  const names = Array.from(sql.matchAll(namedParameter), ([, name = '']) => name);
  const known = new Set(names).size;
  const statement = lazy(() => database.prepare(sql.replaceAll(namedParameter, '?')));
  return (parameters) => {
    const values = names.map((name) => {
      const value = parameters[name];
      if (value === undefined) throw new Error(`the parameter ${name} is missing`);
      return value;
    });
    if (Object.keys(parameters).length !== known) throw new Error('a parameter is not in the statement');
    const { changes, lastInsertRowid } = statement().run(...values);
    return { changes: Number(changes), rowId: Number(lastInsertRowid) };
  };
}

/** Prepares an INSERT with positional parameters, which returns whether it added a row. */
export function prepareAddition(
  database: DatabaseSync,
  sql: string,
): (...parameters: SQLInputValue[]) => boolean {
  const statement = lazy(() => database.prepare(sql));
  return (...parameters) => Number(statement().run(...parameters).changes) > 0;
}

/** A boolean in SQLite. */
export type Bit = 0 | 1;

export function bit(truth: boolean): Bit {
  return truth ? 1 : 0;
}
