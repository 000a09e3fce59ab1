import { firstSchema, readSchema } from '../../../store/schema-file.ts';
import type { Connection } from './connection.ts';
import type { Database } from './database.ts';
import { sqlStates, PostgresRefused, refusalOf } from './faults.ts';
import { advisory } from './locks.ts';
import { inSchema, tableNames } from './names.ts';
import { indexSearches } from './search-index.ts';
import type { Row } from './statements.ts';

/**
 * SQL that leads to a schema from the one before, the first from an empty schema. `minimum`: the oldest schema whose program
 * can still use the tables. The instances of an authority are not all replaced at once, so a migration only adds what the
 * new program needs. A later migration removes what no instance uses any more.
 */
export type Migration = { sql: string; minimum: number };

/** The migrations after the first schema. A released migration is never changed; a later change of the tables is another. */
const migrations: readonly Migration[] = [];

export function latchkeySchemas(): readonly Migration[] {
  return [{ sql: readSchema('features/postgres/store/schema.sql'), minimum: firstSchema }, ...migrations];
}

/** The number of the newest schema that this version knows. */
export const newestSchema: number = firstSchema + migrations.length;

/** The table with the number of the schema. */
const versionTable = 'schema_version';
/** Tables that only previews had. No version can use the tables of a preview any more. */
const previewTables = ['latchkey_schema', 'sync_operation'];

/** Older servers get no updates from the PostgreSQL project, and no test runs on them. */
const oldestServer = 15;

/** How long a migration waits for a lock on a table, in ms. Every other statement on the table waits behind it. */
const lockTimeoutMs = 5_000;

/**
 * Migrates a database to the present schema. If several instances start, one migrates and the others wait. Throws
 * `PostgresRefused` and changes nothing if the server is too old or its encoding is not UTF-8, if the schema holds something
 * else or is newer than this program can use, or if the role may not create or write the tables.
 */
export async function migrate(
  database: Database,
  schemas: readonly Migration[] = latchkeySchemas(),
): Promise<void> {
  try {
    const newest = newestOf(schemas);
    const present = await examine(database, newest);
    if (present === null || present.version < newest) {
      await database.lend(async (connection) => await migrateInTransaction(connection, schemas));
    }
    await indexSearches(database);
  } catch (error) {
    throw refusalOf(error, database) ?? error;
  }
}

/** Examines a database that was migrated before. Rejects as `migrate` does if it can no longer be used. */
export async function examineExisting(database: Queryable): Promise<void> {
  if ((await examine(database)) === null) {
    throw new PostgresRefused(
      `the tables in ${database.names.schema} are gone: restore them, or start anew.`,
    );
  }
}

/** Gives the version of the tables; null if there are none yet. Rejects as `migrate` does if they cannot be used. */
export async function examine(database: Queryable, newest = newestSchema): Promise<SchemaVersion | null> {
  await examineServer(database);
  const present = await versionIn(database);
  refuseNewer(present, newest);
  if (present !== null) await refuseWithoutRights(database);
  return present;
}

async function examineServer({ query }: Queryable): Promise<void> {
  const [row] = await query(`SELECT current_setting('server_version_num')::integer / 10000 AS version,
    current_setting('server_encoding') AS encoding, current_setting('transaction_read_only')::boolean AS "isReadOnly",
    pg_is_in_recovery() AS "isStandby"`);
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

/** Tables whose rows are never updated or deleted, except by a migration. */
const appendOnly = ['audit_event', versionTable];
/** The functions that statements call. */
const called = ['change_licenses', 'server_history'];

async function refuseWithoutRights({ names, query }: Queryable): Promise<void> {
  const lacking = (right: string): string => `NOT has_table_privilege(oid, '${right}')`;
  const tables = await query(
    `SELECT relname AS name FROM pg_catalog.pg_class WHERE relnamespace = $1::regnamespace AND relname = ANY ($3::text[]) AND
       (${lacking('SELECT')} OR relname <> '${versionTable}' AND ${lacking('INSERT')}
       OR relname <> ALL ($2::text[]) AND (${lacking('UPDATE')} OR ${lacking('DELETE')})) ORDER BY relname`,
    [names.schema, appendOnly, [...tableNames, versionTable]],
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

/** The number of the schema, and the oldest schema whose program can use it. */
export type SchemaVersion = { version: number; minimum: number };

/** Queries a database on any of its connections, or on one of them. */
export type Queryable = Pick<Database, 'names' | 'query'>;

/** Null: the schema does not exist, or is empty. */
async function versionIn({ names, query }: Queryable): Promise<SchemaVersion | null> {
  const [schemaState] = await query(
    `SELECT to_regclass($1::text) IS NOT NULL AS "isOurs",
       EXISTS (SELECT FROM unnest($2::text[]) AS name WHERE to_regclass(name) IS NOT NULL) AS "isPreview", EXISTS
       (SELECT 1 FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace($3::text)) AS "isUsed"`,
    [names.of(versionTable), previewTables.map((table) => names.of(table)), names.schema],
  );
  let isPreview = schemaState?.['isPreview'] === true;
  if (schemaState?.['isOurs'] === true && !isPreview) {
    const [row] = await query(`SELECT version, minimum FROM ${names.of(versionTable)}`);
    const present = { version: Number(row?.['version'] ?? 0), minimum: Number(row?.['minimum'] ?? 0) };
    if (present.version >= firstSchema) return present;
    isPreview = true;
  }
  if (schemaState?.['isUsed'] !== true) return null;
  throw new PostgresRefused(
    isPreview
      ? `the tables in ${names.schema} were written by a preview; this version cannot read them. Nothing was changed: choose another schema by store.postgres.schema, or go on with the preview.`
      : `the schema ${names.schema} holds something else: choose another by store.postgres.schema.`,
    { isConfigured: true },
  );
}

/** The number of the last of some schemas. */
function newestOf(schemas: readonly Migration[]): number {
  return firstSchema - 1 + schemas.length;
}

function refuseNewer(present: SchemaVersion | null, newest: number): void {
  if (present === null || present.minimum <= newest) return;
  throw new PostgresRefused(
    `a newer Latchkey wrote it (schema ${present.version}, for versions that know at least ${present.minimum}; this version knows ${newest}): start a newer one.`,
  );
}

/** An open transaction. */
type Session = Queryable & { execute: (text: string) => Promise<void> };

async function migrateInTransaction(connection: Connection, schemas: readonly Migration[]): Promise<void> {
  await connection.begin(null, []);
  const session: Session = {
    names: connection.names,
    query: connection.query,
    execute: (text) => connection.execute(text),
  };
  await lockMigration(session);
  // Another instance may have migrated meanwhile.
  const present = await versionIn(session);
  refuseNewer(present, newestOf(schemas));
  if (present === null) await createSchema(session);
  await applyMigrations(
    session,
    present === null ? schemas : schemas.slice(present.version - firstSchema + 1),
  );
  await connection.commit();
}

/** Creates the tables in an open transaction. Throws `PostgresRefused` if the schema holds anything. */
export async function makeTables(session: Session): Promise<void> {
  await examineServer(session);
  await lockMigration(session);
  if ((await versionIn(session)) !== null) {
    throw new PostgresRefused(
      `an authority is in the schema ${session.names.schema} already: choose another by store.postgres.schema, or drop it if nothing in it is needed.`,
      { isConfigured: true },
    );
  }
  await createSchema(session);
  await applyMigrations(session, latchkeySchemas());
}

/** Waits until no other connection creates or migrates the tables. */
async function lockMigration({ names, execute }: Session): Promise<void> {
  await execute('SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0');
  await execute(advisory(names, 'migration').text);
  await execute(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
}

async function createSchema({ names, query, execute }: Session): Promise<void> {
  const [row] = await query('SELECT to_regnamespace($1::text) IS NOT NULL AS "isThere"', [names.schema]);
  // CREATE SCHEMA IF NOT EXISTS needs a right on the database even if the schema exists.
  if (row?.['isThere'] !== true) await execute(`CREATE SCHEMA ${names.schema}`);
  await execute(`CREATE TABLE ${names.of(versionTable)} (version integer NOT NULL, minimum integer NOT NULL);
    INSERT INTO ${names.of(versionTable)} (version, minimum) VALUES (${firstSchema - 1}, 0)`);
}

async function applyMigrations({ names, execute }: Session, missing: readonly Migration[]): Promise<void> {
  for (const { sql, minimum } of missing) {
    await execute(inSchema(names, sql));
    await execute(`UPDATE ${names.of(versionTable)} SET version = version + 1, minimum = ${minimum}`);
  }
}
