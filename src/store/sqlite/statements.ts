import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';

/** A named parameter. */
const parameter = /:(\w+)/g;

/** A reading statement, prepared once, when it is first used. */
export interface Query<Value> {
  first(...parameters: SQLInputValue[]): Value | null;
  all(...parameters: SQLInputValue[]): Value[];
}

/** Most statements wait long for their first use, and each that is prepared takes time and memory. */
function onUse<Prepared>(prepare: () => Prepared): () => Prepared {
  let prepared: Prepared | null = null;
  return () => (prepared ??= prepare());
}

/**
 * Makes a reading statement. `from` names the shape of its rows: the tables are STRICT and check their
 * columns, so that a row of another shape cannot have been written.
 */
export function prepareQuery<Value>(
  database: DatabaseSync,
  sql: string,
  from: (row: never) => Value,
): Query<Value> {
  const query = onUse(() => prepareRows(database, sql));
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
 * Takes rows as arrays, which Node's types do not tell: each row that Node makes an object of has a shape of its own,
 * which is slow to make and to read.
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
    for (const [place, name] of names.entries()) row[name] = values[place] ?? null;
    return row;
  };
  return { statement, rowOf };
}

/** Makes a statement that selects one `count`. */
export function prepareCount(
  database: DatabaseSync,
  sql: string,
): (...parameters: SQLInputValue[]) => number {
  const query = prepareQuery(database, sql, (row: { count: number }) => row.count);
  return (...parameters) => query.first(...parameters) ?? 0;
}

/** Makes a writing statement with named parameters; running it gives the rows changed and the row id made. */
export function prepareChange(
  database: DatabaseSync,
  sql: string,
): (parameters: Record<string, SQLInputValue>) => { changes: number; rowId: number } {
  // By their place: a name, or a number, is looked up for each value.
  const names = Array.from(sql.matchAll(parameter), ([, name = '']) => name);
  const known = new Set(names).size;
  const statement = onUse(() => database.prepare(sql.replaceAll(parameter, '?')));
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

/** Makes a statement that adds a row unless it is there, its parameters in their order; running it gives whether it did. */
export function prepareAddition(
  database: DatabaseSync,
  sql: string,
): (...parameters: SQLInputValue[]) => boolean {
  const statement = onUse(() => database.prepare(sql));
  return (...parameters) => Number(statement().run(...parameters).changes) > 0;
}

/** A truth value as SQLite keeps it. */
export type Bit = 0 | 1;

/** Writes a truth value as SQLite keeps it. */
export function bit(truth: boolean): Bit {
  return truth ? 1 : 0;
}
