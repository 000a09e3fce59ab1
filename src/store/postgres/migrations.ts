import type { Connection } from './connection.ts';
import type { Database } from './database.ts';
import { PostgresRefused, sqlState } from './faults.ts';
import { advisory } from './locks.ts';
import { schema1 } from './schema/schema-1.ts';
import type { Names } from './names.ts';

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
 * Throws `PostgresRefused` for a database that is too old, a schema that holds something else, is newer than this
 * program may read, or that this role may not make; nothing was changed then.
 */
export async function migrate(database: Database, steps: readonly Migration[] = migrations): Promise<void> {
  try {
    await examineServer(database);
    const present = await appliedIn(database);
    refuseNewer(present, steps);
    if (present !== null && present.applied >= steps.length) return;
    await database.lend(async (connection) => await takeSteps(connection, steps));
  } catch (error) {
    throw refusalOf(error, database.names);
  }
}

/** Wrong password; no such role or database: waiting would not help. */
const wrongAddress: ReadonlySet<string | null> = new Set(['28P01', '28000', '3D000']);

function refusalOf(error: unknown, names: Names): unknown {
  const state = sqlState(error);
  if (state === '42501') return new PostgresRefused(rightsMissing(names, error), error);
  return error instanceof Error && wrongAddress.has(state)
    ? new PostgresRefused(`${error.message}.`, error)
    : error;
}

function rightsMissing({ schema }: Names, error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  return `the role has no right to make the schema ${schema} or its tables (${said}): make the schema for it, by CREATE SCHEMA ${schema} AUTHORIZATION its name.`;
}

async function examineServer(database: Database): Promise<void> {
  const [row] = await database.query('SHOW server_version_num');
  const version = Math.floor(Number(row?.['server_version_num']) / 10_000);
  if (version < oldestServer) {
    throw new PostgresRefused(`it is PostgreSQL ${version}; ${oldestServer} or later is needed.`);
  }
}

/** How many steps were taken, and the schema that a program must know at least to work on it. */
type Applied = { applied: number; minimum: number };

type Asking = Pick<Database, 'names' | 'query'>;

/** Null: there is no such schema yet, or it is empty. */
async function appliedIn({ names, query }: Asking): Promise<Applied | null> {
  const marker = names.of('latchkey_schema');
  const [found] = await query(
    `SELECT to_regclass($1::text) IS NOT NULL AS "isOurs", EXISTS (SELECT 1 FROM pg_catalog.pg_class AS class
       JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
       WHERE '"' || replace(space.nspname, '"', '""') || '"' = $2) AS "isUsed"`,
    [marker, names.schema],
  );
  if (found?.['isOurs'] !== true) {
    if (found?.['isUsed'] !== true) return null;
    throw new PostgresRefused(
      `the schema ${names.schema} holds something else: choose another by store.postgres.schema.`,
    );
  }
  const [row] = await query(`SELECT applied, minimum FROM ${marker}`);
  return { applied: Number(row?.['applied'] ?? 0), minimum: Number(row?.['minimum'] ?? 0) };
}

function refuseNewer(present: Applied | null, steps: readonly Migration[]): void {
  if (present === null || present.minimum <= steps.length) return;
  throw new PostgresRefused(
    `a newer Latchkey made it (schema ${present.applied}, for those that know ${present.minimum} at least; this one knows ${steps.length}).`,
  );
}

async function takeSteps(connection: Connection, steps: readonly Migration[]): Promise<void> {
  const { names } = connection;
  await connection.begin(null, []);
  await connection.execute(`SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0`);
  await connection.execute(advisory(names, 'migration').text);
  await connection.execute(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
  // Another copy may have taken them meanwhile.
  const query: Asking['query'] = (text, values) => connection.rows({ name: '', text }, values ?? []);
  const present = await appliedIn({ names, query });
  refuseNewer(present, steps);
  if (present === null) await connection.execute(await beginnings(names, query));
  for (const { sql, minimum } of steps.slice(present?.applied ?? 0)) {
    await connection.execute(sql.replaceAll('latchkey.', `${names.schema}.`));
    await connection.execute(
      `UPDATE ${names.of('latchkey_schema')} SET applied = applied + 1, minimum = ${minimum}`,
    );
  }
  await connection.commit();
}

/** The table that counts the steps. A schema that is there is not made: it would need a right on the database. */
async function beginnings(names: Names, query: Asking['query']): Promise<string> {
  const [row] = await query(
    `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE '"' || replace(nspname, '"', '""') || '"' = $1) AS "isThere"`,
    [names.schema],
  );
  const marker = names.of('latchkey_schema');
  return `${row?.['isThere'] === true ? '' : `CREATE SCHEMA ${names.schema};`}
    CREATE TABLE ${marker} (applied integer NOT NULL, minimum integer NOT NULL);
    INSERT INTO ${marker} (applied, minimum) VALUES (0, 0);`;
}
