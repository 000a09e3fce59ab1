import { hash } from 'node:crypto';
import { sqlWith, type Dialect, type Sql, type SqlValue, type WritingSql } from '../../../store/sql.ts';
import { advisoryKey, inSchema, type Names } from './names.ts';

/** A statement that each connection prepares once. The name is unique for the text. */
export type Statement = { readonly name: string; readonly text: string };

/** A statement that reads rows by an array of keys. `key`: the column of the rows that has the key. */
export type Lookup = Statement & { readonly key: string };

/** What a search looks through. */
export const searchedText = `lower(license.license_key || ' ' || license.buyer_email)`;

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

/** Also prepares lookups of single rows by their key, which may be batched. */
export interface PostgresSql extends Sql<'postgres'> {
  /** The text compares the key with `ANY ($1)` and selects it as `key`. */
  lookup<Value>(text: string, key: string): (key: string) => Promise<Value | null>;
  /** Statements that the server plans anew for their values each time: how much a search finds decides how it is read. */
  readonly planned: Sql<'postgres'>;
}

export type WritingPostgresSql = PostgresSql & WritingSql<'postgres'>;

export const dialect: Dialect = {
  greatest: 'greatest',
  forUpdate: 'FOR NO KEY UPDATE',
  noLimit: 'ALL',
  isIn: (column, place) => `${column} = ANY (${place}::text[])`,
  contains: (column, place) => `strpos(lower(${column}), lower(${place}::text COLLATE "C")) > 0`,
  endOf: (column, place) => `right(${column}, length(${place}::text))`,
  items: (json) => `json_array_elements_text(${json}::json) AS items (value)`,
  arrayOf: (expression) => `coalesce(json_agg(${expression}), '[]')::text`,
  // The first half names the store. The second half changes with the history of the server, too.
  epoch: `(SELECT left(value, 16) || left(encode(sha256(convert_to(
    value || ' ' || latchkey.server_history(), 'UTF8')), 'hex'), 16)
  FROM latchkey.setting WHERE name = 'sync_epoch')`,
};

function sqlOf(source: Source, prepare: (text: string) => Statement): Sql<'postgres'> {
  return sqlWith<'postgres'>('postgres', dialect, {
    first(text, from, absent, isLong = false) {
      const statement = prepare(text);
      return async (...values) => {
        const row = isLong ? (await source.rows(statement, values))[0] : await source.row(statement, values);
        return row === undefined ? absent : from(row as never);
      };
    },
    all(text, from) {
      const statement = prepare(text);
      return async (...values) => {
        const rows = await source.rows(statement, values);
        return rows.map((row) => from(row as never));
      };
    },
  });
}

export function sqlOn(source: Source): PostgresSql {
  const prepare = (text: string): Statement => statementOf(inSchema(source.names, text));
  return {
    ...sqlOf(source, prepare),
    planned: sqlOf(source, (text) => ({ name: '', text: inSchema(source.names, text) })),
    lookup<Value>(text: string, key: string) {
      const statement = { ...prepare(text), key };
      return async (value) => ((await source.lookUp(statement, value)) ?? null) as Value | null;
    },
  };
}

export function writingSqlOn(source: WritingSource): WritingPostgresSql {
  const sql = sqlOn(source);
  return {
    ...sql,
    run(text) {
      const statement = statementOf(inSchema(source.names, text));
      return (...values) => source.send(statement, values);
    },
    lock(name, condition) {
      const text = `SELECT pg_advisory_xact_lock(${advisoryKey(source.names, name)}) WHERE ${condition}`;
      const statement = statementOf(inSchema(source.names, text));
      return () => source.send(statement, []);
    },
    changes: (text) => sql.count(`WITH changed AS (${text} RETURNING 1) SELECT count(*) FROM changed`),
  };
}
