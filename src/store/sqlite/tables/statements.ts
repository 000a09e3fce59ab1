import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';

/** A reading statement, prepared once, when it is first used. */
export interface Query<Value> {
  first(...parameters: SQLInputValue[]): Value | null;
  all(...parameters: SQLInputValue[]): Value[];
}

/** Most statements wait long for their first use, and each that is prepared takes time and memory. */
function onUse(database: DatabaseSync, sql: string): () => StatementSync {
  let statement: StatementSync | null = null;
  return () => (statement ??= database.prepare(sql));
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
  const statement = onUse(database, sql);
  return {
    first(...parameters) {
      const row = statement().get(...parameters);
      return row === undefined ? null : from(row as never);
    },
    all(...parameters) {
      return statement()
        .all(...parameters)
        .map((row) => from(row as never));
    },
  };
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
  const { numbered, names } = byPlace(sql);
  const statement = onUse(database, numbered);
  return (parameters) => {
    const values = names.map((name) => {
      const value = parameters[name];
      if (value === undefined) throw new Error(`the parameter ${name} is missing`);
      return value;
    });
    if (Object.keys(parameters).length !== names.length)
      throw new Error('a parameter is not in the statement');
    const { changes, lastInsertRowid } = statement().run(...values);
    return { changes: Number(changes), rowId: Number(lastInsertRowid) };
  };
}

/** Makes a statement that adds a row unless it is there, its parameters in their order; running it gives whether it did. */
export function prepareAddition(
  database: DatabaseSync,
  sql: string,
): (...parameters: SQLInputValue[]) => boolean {
  const statement = onUse(database, sql);
  return (...parameters) => Number(statement().run(...parameters).changes) > 0;
}

/** Numbers the parameters of a statement: Node hands over values by their place four times as fast as by name. */
function byPlace(sql: string): { numbered: string; names: readonly string[] } {
  const names: string[] = [];
  const numbered = sql.replaceAll(/:(\w+)/g, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `?${names.indexOf(name) + 1}`;
  });
  return { numbered, names };
}

/** Restricts a list to an account, the first parameter; null: to none. For lists that people read. */
export const inReach = '(?1 IS NULL OR account_id = ?1)';

/** A truth value as SQLite keeps it. */
export type Bit = 0 | 1;

/** Writes a truth value as SQLite keeps it. */
export function bit(truth: boolean): Bit {
  return truth ? 1 : 0;
}
