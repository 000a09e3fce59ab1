import type {
  DatabaseSync,
  SQLInputValue,
  SQLOutputValue,
  StatementResultingChanges,
  StatementSync,
} from 'node:sqlite';
import type { Page } from '../../domain/page.ts';
import { sqlWith, type Dialect, type SqlValue, type WritingSql } from '../sql.ts';

export interface SqliteSql extends WritingSql<'sqlite'> {
  /** An INSERT of one row, which returns its number. That is faster than RETURNING. */
  readonly insert: (text: string) => (...values: SqlValue[]) => number;
}

export const dialect: Dialect = {
  greatest: 'max',
  forUpdate: '',
  noLimit: '-1',
  isIn: (column, place) => `${column} IN (SELECT value FROM json_each(${place}))`,
  contains: (column, place) => `instr(lower(${column}), lower(${place})) > 0`,
  endOf: (column, place) => `substr(${column}, -length(${place}))`,
  items: (json) => `json_each(${json}) AS items`,
  arrayOf: (expression) => `json_group_array(${expression})`,
  epoch: "(SELECT value FROM setting WHERE name = 'sync_epoch')",
};

/** Prepares the statements of the tables. */
export function sqlOn(database: DatabaseSync): SqliteSql {
  const sql = sqlWith<'sqlite'>('sqlite', dialect, {
    first(text, from, absent) {
      const statement = new Statement(database, text);
      return (...values) => {
        const row = statement.first(values);
        return row === undefined ? absent : from(statement.objectOf(row) as never);
      };
    },
    all(text, from) {
      const statement = new Statement(database, text);
      return (...values) => statement.all(values).map((row) => from(statement.objectOf(row) as never));
    },
  });
  const changes: SqliteSql['changes'] = (text) => {
    const statement = new Statement(database, text);
    return (...values) => Number(statement.run(values).changes);
  };
  return {
    ...sql,
    run: changes,
    changes,
    lock: () => () => undefined,
    insert(text) {
      const statement = new Statement(database, text);
      return (...values) => Number(statement.run(values).lastInsertRowid);
    },
  };
}

/** The text of a statement for SQLite, and the index of the value of each of its parameters. */
export function sqliteText(text: string): { sql: string; order: number[] } {
  const order: number[] = [];
  // SQLite would look a numbered parameter up for each value.
  const sql = text
    .replaceAll('latchkey.', '')
    .replaceAll(/::\w+/g, '')
    .replaceAll(/\$(\d+)/g, (_, number) => {
      order.push(Number(number) - 1);
      return '?';
    });
  return { sql, order };
}

type Row = readonly SQLOutputValue[];

/** Prepares itself at its first use: to prepare all at the start would take time and memory. */
class Statement {
  readonly #database: DatabaseSync;
  readonly #text: string;
  #order: readonly number[] = [];
  #prepared: StatementSync | null = null;
  #names: readonly string[] = [];

  constructor(database: DatabaseSync, text: string) {
    this.#database = database;
    this.#text = text;
  }

  first(values: readonly SqlValue[]): Row | undefined {
    return this.#prepare().get(...this.#bind(values)) as Row | undefined;
  }

  all(values: readonly SqlValue[]): Row[] {
    return this.#prepare().all(...this.#bind(values)) as unknown as Row[];
  }

  run(values: readonly SqlValue[]): StatementResultingChanges {
    return this.#prepare().run(...this.#bind(values));
  }

  /** Not built by Node, whose objects have a different shape for each row, which is slow. */
  objectOf(row: Row): object {
    const object: Record<string, SQLOutputValue> = {};
    for (const [index, name] of this.#names.entries()) object[name] = row[index] ?? null;
    return object;
  }

  #prepare(): StatementSync {
    if (this.#prepared !== null) return this.#prepared;
    const { sql, order } = sqliteText(this.#text);
    const prepared = this.#database.prepare(sql);
    this.#order = order;
    prepared.setReturnArrays(true);
    this.#names = prepared.columns().map(({ name }) => name);
    this.#prepared = prepared;
    return prepared;
  }

  #bind(values: readonly SqlValue[]): SQLInputValue[] {
    return this.#order.map((index) => {
      const value = values[index];
      if (value === undefined) throw new Error(`the value $${index + 1} is missing: ${this.#text}`);
      if (typeof value === 'boolean') return Number(value);
      return typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
    });
  }
}

/** The key after which a page starts, in a list sorted by text. No key is empty. */
export function afterText({ cursor }: Page): string {
  return String(cursor?.[0] ?? '');
}

/** The key after which a page starts, in a list sorted by a number. */
export function afterNumber({ cursor }: Page): number {
  return Number(cursor?.[0] ?? Number.MIN_SAFE_INTEGER);
}

/** Whether the product of a license belongs to an account, the parameter of this number. */
export function soldBy(account: number): string {
  return `EXISTS (SELECT 1 FROM product WHERE product.product_key = license.product_key
    AND product.account_id = $${account})`;
}

/** Restricts licenses to a tenant; `account`, `product`: the numbers of the parameters. */
export function tenantIs(account: number, product: number): string {
  return `($${account} IS NULL OR ${soldBy(account)}) AND ($${product} IS NULL OR product_key = $${product})`;
}
