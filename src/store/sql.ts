import type { Tenant } from '../domain/access/principal.ts';
import type { Page } from '../domain/page.ts';
import { camelCase } from '../domain/text.ts';
import type { Awaitable } from '../service/tables.ts';

export type Engine = 'sqlite' | 'postgres';

/** On SQLite, a boolean is 0 or 1, and an array is JSON. */
export type SqlValue = string | number | boolean | null | readonly (string | null)[];

/** What a statement returns: SQLite returns at once, PostgreSQL later. */
export type Returned<E extends Engine, Value> = E extends 'sqlite' ? Value : Promise<Value>;

/** A table, as the use cases see it, on one of the engines. */
export type On<E extends Engine, Table> = {
  readonly [Method in keyof Table]: Table[Method] extends (...args: infer Args) => infer Value
    ? (...args: Args) => [Value] extends [void] ? Awaitable<void> : Returned<E, Value>
    : never;
};

type Run<E extends Engine, Value> = (...values: SqlValue[]) => Returned<E, Value>;

/** Makes a value of a row. No runtime check is needed, because the schema types and checks the columns. */
type From<Value> = (row: never) => Value;

/**
 * Prepares statements that read. One text serves both engines: `$1` is a parameter, and `latchkey` stands for the
 * configured schema of PostgreSQL. SQLite has no schemas and no casts (`::bigint`), so they are left out there.
 */
export interface Sql<E extends Engine> {
  readonly engine: E;
  readonly dialect: Dialect;
  /** The first row. On PostgreSQL only for fast reads: other reads may wait for it. Default of `from`: the row. */
  readonly get: <Value>(text: string, from?: From<Value>) => Run<E, Value | null>;
  readonly all: <Value>(text: string, from?: From<Value>) => Run<E, Value[]>;
  /** The only column of the first row. */
  readonly value: <Value>(text: string) => Run<E, Value | null>;
  /** The only column of all rows. */
  readonly column: <Value>(text: string) => Run<E, Value[]>;
  /** A single number; 0 if there is no row. */
  readonly count: (text: string) => Run<E, number>;
  /** Whether the statement returns a row. */
  readonly exists: (text: string) => Run<E, boolean>;
  readonly list: <Value>(parts: ListParts, from?: From<Value>) => List<E, Value>;
}

/** Also prepares statements that write. */
export interface WritingSql<E extends Engine> extends Sql<E> {
  /** A statement without a result, which PostgreSQL gets without a wait for its response. */
  readonly run: (text: string) => (...values: SqlValue[]) => void;
  /** A statement that returns the number of the rows that it has changed. */
  readonly changes: (text: string) => Run<E, number>;
  /** Locks a name until the end of the transaction, on a condition. On SQLite, transactions do not overlap anyway. */
  readonly lock: (name: string, condition: string) => () => void;
}

/** What the engines write differently. */
export type Dialect = {
  greatest: 'max' | 'greatest';
  /** The end of a SELECT that locks its row. SQLite has one connection that writes, so transactions do not overlap. */
  forUpdate: '' | 'FOR NO KEY UPDATE';
  noLimit: '-1' | 'ALL';
  /** Whether a column is in an array, the parameter `place`. */
  isIn: (column: string, place: string) => string;
  /** Whether a column has the text of a parameter in it, in any case of the letters of ASCII. */
  contains: (column: string, place: string) => string;
  /** The end of a column that is as long as the text of a parameter. */
  endOf: (column: string, place: string) => string;
  /** The items of a JSON array: a table `items` with the column `value`. */
  items: (json: string) => string;
  /** The values of an expression as a JSON array. */
  arrayOf: (expression: string) => string;
  /** The name of the history of this store; no value before the first start. */
  epoch: string;
};

/** `key`: the columns that sort the list; `isLatestFirst`: in descending order. */
type ListParts = { select: string; from: string; key: readonly string[]; isLatestFirst?: boolean };

/** A condition, and the values of its own `$1`, `$2` … It is left out if the first value is undefined. */
export type Condition = readonly [text: string, ...values: (SqlValue | undefined)[]];

/** A list whose conditions are known only at the call. */
export interface List<E extends Engine, Value> {
  readonly list: (conditions: readonly Condition[], page: Page) => Returned<E, Value[]>;
  readonly count: (conditions: readonly Condition[]) => Returned<E, number>;
  /** Counts up to a number, and then reads no further. */
  readonly countUpTo: (conditions: readonly Condition[], most: number) => Returned<E, number>;
}

/** How an engine prepares a statement that reads. */
export type Prepare<E extends Engine> = {
  /** `isLong`: other reads should not wait for it. */
  first: <Value, Absent>(
    text: string,
    from: From<Value>,
    absent: Absent,
    isLong?: boolean,
  ) => Run<E, Value | Absent>;
  all: <Value>(text: string, from: From<Value>) => Run<E, Value[]>;
};

export function sqlWith<E extends Engine>(engine: E, dialect: Dialect, { first, all }: Prepare<E>): Sql<E> {
  return {
    engine,
    dialect,
    get: <Value>(text: string, from: From<Value> = same) => first(text, from, null),
    all: <Value>(text: string, from: From<Value> = same) => all(text, from),
    value: (text) => first(text, onlyOf, null),
    column: (text) => all(text, onlyOf),
    count: (text) => first(text, numberOf, 0),
    exists: (text) => first(text, () => true, false),
    list: (parts, from = same) =>
      prepareList(
        parts,
        (text) => all(text, from),
        (text) => first(text, numberOf, 0, true),
      ),
  };
}

const same = (row: never): never => row;

/** The only value of a row. */
const onlyOf = (row: Readonly<Record<string, unknown>>): never => Object.values(row)[0] as never;

const numberOf = (row: Readonly<Record<string, unknown>>): number => Number(Object.values(row)[0] ?? 0);

/** Prepares each statement once for each set of conditions that is used. */
export function prepareList<E extends Engine, Value>(
  { select, from, key, isLatestFirst = false }: ListParts,
  prepare: (text: string) => Run<E, Value[]>,
  prepareCount: (text: string) => Run<E, number>,
): List<E, Value> {
  const listed = once(prepare);
  const counted = once(prepareCount);
  const by = key.map((column) => (isLatestFirst ? `${column} DESC` : column)).join(', ');
  const places = key.map((_, index) => `$${index + 1}`).join(', ');
  const behind = `(${key.join(', ')}) ${isLatestFirst ? '<' : '>'} (${places})`;
  return {
    list(conditions, { limit, offset, cursor = [] }) {
      const { where, values } = join([...conditions, [behind, ...cursor]]);
      const next = values.length + 1;
      const text = `SELECT ${select} FROM ${from}${where} ORDER BY ${by} LIMIT $${next} OFFSET $${next + 1}`;
      return listed(text)(...values, limit, offset);
    },
    count(conditions) {
      const { where, values } = join(conditions);
      return counted(`SELECT count(*) AS count FROM ${from}${where}`)(...values);
    },
    countUpTo(conditions, most) {
      const { where, values } = join(conditions);
      const rows = `SELECT 1 FROM ${from}${where} LIMIT ${most}`;
      return counted(`SELECT count(*) AS count FROM (${rows}) AS counted`)(...values);
    },
  };
}

/** Calls a function once for each text. */
function once<Made>(make: (text: string) => Made): (text: string) => Made {
  const all = new Map<string, Made>();
  return (text) => {
    const made = all.get(text) ?? make(text);
    all.set(text, made);
    return made;
  };
}

/** Joins the conditions with AND. */
function join(conditions: readonly Condition[]): { where: string; values: SqlValue[] } {
  const terms: string[] = [];
  const values: SqlValue[] = [];
  for (const [text, ...own] of conditions) {
    if (own[0] === undefined) continue;
    const before = values.length;
    terms.push(text.replaceAll(/\$(\d+)/g, (_, number) => `$${before + Number(number)}`));
    for (const value of own) values.push(value ?? null);
  }
  return { where: terms.length === 0 ? '' : ` WHERE ${terms.join(' AND ')}`, values };
}

/** Restricts a list to the account of a tenant; undefined: no restriction. */
export function ofAccount(tenant: Tenant | undefined): Condition {
  return ['account_id = $1', tenant?.accountId];
}

/** Restricts the rows of a table, each with a product, to a tenant. */
export function ofTenant(table: string, tenant: Tenant | undefined): Condition[] {
  return [
    [
      `EXISTS (SELECT 1 FROM latchkey.product AS reached
        WHERE reached.product_key = ${table}.product_key AND reached.account_id = $1)`,
      tenant?.accountId,
    ],
    [`${table}.product_key = $1`, tenant?.productKey ?? undefined],
  ];
}

/** Columns of a table, in their order, and the rows of the program that they store. */
export interface Columns<Row> {
  /** For SELECT. */
  readonly list: string;
  /** `more`: columns that are not in the rows; their values follow. */
  insert: (table: string, ...more: string[]) => string;
  /** An INSERT that replaces the row with the same key. `kept`: columns that stay as they are. */
  upsert: (table: string, key: readonly string[], kept?: readonly string[]) => string;
  /** For UPDATE: sets all columns but some, to the parameters of `values`. */
  set: (except: readonly string[]) => string;
  /** The parameter of a column, in `values`. */
  place: (column: string) => string;
  values: (row: Row) => SqlValue[];
  readonly from: (row: never) => Row;
}

/**
 * Declares columns as in SELECT: `account_id, lease_email AS showsEmail BOOL, answer JSON`. The member of a column has its
 * name in camel case, unless AS names it. BOOL and JSON are converted. `alias`: of the table, where others are joined.
 */
export function columns<Row extends object>(declared: string, alias?: string): Columns<Row> {
  const prefix = alias === undefined ? '' : `${alias}.`;
  const all = declared.split(',').map((text) => {
    const parts = /^(\w+)(?: AS (\w+))?(?: (BOOL|JSON))?$/.exec(text.trim());
    if (parts === null) throw new Error(`not a column: ${text}`);
    const [, column = '', member = camelCase(column), kind] = parts;
    return { column, member, kind };
  });
  const names = all.map(({ column }) => column);
  const converted = all.filter(({ kind }) => kind !== undefined);
  const insert = (table: string, ...more: string[]): string => {
    const set = [...names, ...more];
    const places = set.map((_, index) => `$${index + 1}`);
    return `INSERT INTO latchkey.${table} (${set.join(', ')}) VALUES (${places.join(', ')})`;
  };
  const without = (except: readonly string[]): string[] => names.filter((name) => !except.includes(name));
  const place = (column: string): string => `$${1 + names.indexOf(column)}`;
  return {
    list: all
      .map(({ column, member }) => `${prefix}${column}${member === column ? '' : ` AS "${member}"`}`)
      .join(', '),
    insert,
    upsert(table, key, kept = []) {
      const sets = without([...key, ...kept]).map((column) => `${column} = excluded.${column}`);
      return `${insert(table)} ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${sets.join(', ')}`;
    },
    set: (except) =>
      without(except)
        .map((column) => `${column} = ${place(column)}`)
        .join(', '),
    place,
    values: (row) =>
      all.map(({ member, kind }) => {
        const value = (row as Record<string, unknown>)[member];
        if (value === undefined) throw new Error(`${member} is missing`);
        return (kind === 'JSON' && value !== null ? JSON.stringify(value) : value) as SqlValue;
      }),
    from(raw) {
      const row = raw as Record<string, unknown>;
      for (const { member, kind } of converted) {
        const value = row[member];
        if (value !== null) row[member] = kind === 'BOOL' ? Boolean(value) : JSON.parse(value as string);
      }
      return row as Row;
    },
  };
}
