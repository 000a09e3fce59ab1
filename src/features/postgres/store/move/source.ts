import { DatabaseSync } from 'node:sqlite';
import { lastNumbers, type MovedTable } from './tables.ts';

/** A value in SQLite. */
export type Value = string | number | null;

export interface Source extends Disposable {
  count(table: MovedTable): number;
  /** In the order of the primary key. */
  rows(table: MovedTable): IterableIterator<readonly Value[]>;
  lastNumber(of: keyof typeof lastNumbers): number;
}

/** Opens a database of the present schema. No process may write to it meanwhile. */
export function openSource(path: string): Source {
  const database = new DatabaseSync(path, { readOnly: true });
  const numberOf = (sql: string): number => Number(Object.values(database.prepare(sql).get() ?? {})[0]);
  return {
    count: ({ name, where }) => numberOf(`SELECT count(*) FROM ${name} WHERE ${where}`),
    rows(table) {
      const { name, columns, computed, keyLength, where } = table;
      const statement = database.prepare(
        `SELECT ${columns.map((column) => computed[column] ?? column).join(', ')} FROM ${name}
         WHERE ${where} ORDER BY ${columns.slice(0, keyLength).join(', ')}`,
      );
      statement.setReturnArrays(true);
      return statement.iterate() as unknown as IterableIterator<readonly Value[]>;
    },
    lastNumber: (of) => numberOf(lastNumbers[of]),
    [Symbol.dispose]: () => database.close(),
  };
}
