import type { Connection } from './connection.ts';
import type { Database } from './database.ts';
import { sqlStates } from './faults.ts';
import { advisory } from './locks.ts';
import { PostgresRefused, refusalOf } from './refusal.ts';
import { schema1 } from './schema/schema-1.ts';
import { tableNames, type Names } from './names.ts';
import type { Row } from './statements.ts';

/**
 * A step from one schema to the next. `minimum`: the oldest schema whose program may still work on it, since the
 * copies of an authority are not all replaced at once: a step adds what the new program needs, and only a later one
 * takes away what no copy uses any more.
 */
export type Migration = { sql: string; minimum: number };

/** The steps from an empty schema to the present one; `latchkey_schema` counts those that were taken. */
export const migrations: readonly Migration[] = [{ sql: schema1, minimum: 1 }];

/** PostgreSQL before this version is not supported by those who make it, nor tried here. */
const oldestServer = 15;

/** How long a step waits for those who use a table, in ms: behind it everybody waits. */
const lockTimeoutMs = 5_000;

/**
 * Brings the schema of a database up to the present one. One of all copies takes the steps, the others wait for it.
 * Throws `PostgresRefused` for a database that is too old or not of UTF-8, a schema that holds something else, is newer than this
 * program may read, or that this role may not make or write; nothing was changed then.
 */
export async function migrate(database: Database, steps: readonly Migration[] = migrations): Promise<void> {
  try {
    const present = await examine(database, steps);
    if (present === null || present.applied < steps.length) {
      await database.lend(async (connection) => await takeSteps(connection, steps));
    }
  } catch (error) {
    throw refusalOf(error, database) ?? error;
  }
}

/** Whether a migrated database may be worked on, now that time has passed; rejects as `migrate` does where it may not. */
export async function examineAgain(asking: Asking, steps: readonly Migration[] = migrations): Promise<void> {
  if ((await examine(asking, steps)) === null) {
    throw new PostgresRefused(`the tables in ${asking.names.schema} are gone: restore them, or start anew.`);
  }
}

/** What was applied to a database that may be worked on; null: nothing yet. Rejects as `migrate` does. */
export async function examine(
  asking: Asking,
  steps: readonly Migration[] = migrations,
): Promise<Applied | null> {
  await examineServer(asking);
  const present = await appliedIn(asking);
  refuseNewer(present, steps);
  if (present !== null) await refuseWithoutRights(asking);
  return present;
}

async function examineServer({ query }: Asking): Promise<void> {
  const [row] = await query(`SELECT current_setting('server_version_num')::integer / 10000 AS version,
    current_setting('server_encoding') AS encoding, current_setting('transaction_read_only')::boolean AS "isReadOnly", pg_is_in_recovery() AS "isStandby"`);
  const version = Number(row?.['version']);
  if (version < oldestServer) {
    throw new PostgresRefused(`it is PostgreSQL ${version}; ${oldestServer} or later is needed.`);
  }
  if (row?.['encoding'] !== 'UTF8') {
    throw new PostgresRefused(
      `its encoding is ${String(row?.['encoding'])}; UTF8 is needed: make another by CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'.`,
    );
  }
  if (row?.['isReadOnly'] !== true) return;
  const why = row['isStandby'] === true ? 'it is a standby' : 'default_transaction_read_only is on';
  throw Object.assign(new Error(`it only takes reads: ${why}`), { code: sqlStates.readOnlyTransaction });
}

/** What stands in these is never changed, or only by whoever takes a step. */
const unchanged = ['audit', 'latchkey_schema'];
/** The functions that statements call. */
const called = ['change_licenses'];

async function refuseWithoutRights({ names, query }: Asking): Promise<void> {
  const lacking = (right: string): string => `NOT has_table_privilege(oid, '${right}')`;
  const tables = await query(
    `SELECT relname AS name FROM pg_catalog.pg_class WHERE relnamespace = $1::regnamespace AND relname = ANY ($3::text[]) AND
       (${lacking('SELECT')} OR relname <> 'latchkey_schema' AND ${lacking('INSERT')}
       OR relname <> ALL ($2::text[]) AND (${lacking('UPDATE')} OR ${lacking('DELETE')})) ORDER BY relname`,
    [names.schema, unchanged, [...tableNames, 'latchkey_schema']],
  );
  if (tables.length > 0) {
    throw new PostgresRefused(
      `its role may not write ${listed(tables)}: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${names.schema} to it.`,
    );
  }
  const functions = await query(
    `SELECT proname AS name FROM pg_catalog.pg_proc WHERE pronamespace = $1::regnamespace AND proname = ANY ($2::text[])
       AND NOT has_function_privilege(oid, 'EXECUTE') ORDER BY proname`,
    [names.schema, called],
  );
  if (functions.length > 0) {
    throw new PostgresRefused(
      `its role may not call ${listed(functions)}: GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${names.schema} to it.`,
    );
  }
}

function listed(rows: readonly Row[]): string {
  return rows.map((row) => String(row['name'])).join(', ');
}

/** How many steps were taken, and the schema that a program must know at least to work on it. */
export type Applied = { applied: number; minimum: number };

/** Asks a database, by any of its connections or by one of them. */
export type Asking = Pick<Database, 'names' | 'query'>;

/** Null: there is no such schema yet, or it is empty. */
async function appliedIn({ names, query }: Asking): Promise<Applied | null> {
  const marker = names.of('latchkey_schema');
  const [found] = await query(
    `SELECT to_regclass($1::text) IS NOT NULL AS "isOurs", EXISTS
       (SELECT 1 FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace($2::text)) AS "isUsed"`,
    [marker, names.schema],
  );
  if (found?.['isOurs'] !== true) {
    if (found?.['isUsed'] !== true) return null;
    throw new PostgresRefused(
      `the schema ${names.schema} holds something else: choose another by store.postgres.schema.`,
      { isConfigured: true },
    );
  }
  const [row] = await query(`SELECT applied, minimum FROM ${marker}`);
  return { applied: Number(row?.['applied'] ?? 0), minimum: Number(row?.['minimum'] ?? 0) };
}

function refuseNewer(present: Applied | null, steps: readonly Migration[]): void {
  if (present === null || present.minimum <= steps.length) return;
  throw new PostgresRefused(
    `a newer Latchkey made it (schema ${present.applied}, for those that know ${present.minimum} at least; this one knows ${steps.length}): start that one, or a later.`,
  );
}

/** A transaction under way. */
type Session = Asking & { execute: (text: string) => Promise<void> };

async function takeSteps(connection: Connection, steps: readonly Migration[]): Promise<void> {
  await connection.begin(null, []);
  const session: Session = {
    names: connection.names,
    query: connection.query,
    execute: (text) => connection.execute(text),
  };
  await takeTurn(session);
  // Another copy may have taken them meanwhile.
  const present = await appliedIn(session);
  refuseNewer(present, steps);
  await takeFrom(session, present, steps);
  await connection.commit();
}

/** Makes the tables in a transaction under way. Throws `PostgresRefused` where the schema holds anything. */
export async function makeTables(session: Session): Promise<void> {
  await examineServer(session);
  await takeTurn(session);
  if ((await appliedIn(session)) !== null) {
    throw new PostgresRefused(
      `an authority is in the schema ${session.names.schema} already: choose another by store.postgres.schema, or drop it if nothing in it is needed.`,
      { isConfigured: true },
    );
  }
  await takeFrom(session, null, migrations);
}

/** Waits until nobody else makes or changes the tables. */
async function takeTurn({ names, execute }: Session): Promise<void> {
  await execute('SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0');
  await execute(advisory(names, 'migration').text);
  await execute(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
}

async function takeFrom(
  { names, query, execute }: Session,
  present: Applied | null,
  steps: readonly Migration[],
): Promise<void> {
  if (present === null) await execute(await beginnings(names, query));
  for (const { sql, minimum } of steps.slice(present?.applied ?? 0)) {
    await execute(sql.replaceAll('latchkey.', `${names.schema}.`));
    await execute(`UPDATE ${names.of('latchkey_schema')} SET applied = applied + 1, minimum = ${minimum}`);
  }
}

/** The table that counts the steps. A schema that is there is not made: it would need a right on the database. */
async function beginnings(names: Names, query: Asking['query']): Promise<string> {
  const [row] = await query('SELECT to_regnamespace($1::text) IS NOT NULL AS "isThere"', [names.schema]);
  const marker = names.of('latchkey_schema');
  return `${row?.['isThere'] === true ? '' : `CREATE SCHEMA ${names.schema};`}
    CREATE TABLE ${marker} (applied integer NOT NULL, minimum integer NOT NULL);
    INSERT INTO ${marker} (applied, minimum) VALUES (0, 0);`;
}
