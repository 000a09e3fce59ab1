import { readSchema } from '../schema-file.ts';
import type { Connection } from './connection.ts';
import type { Database } from './database.ts';
import { sqlStates, PostgresRefused, refusalOf } from './faults.ts';
import { advisory } from './locks.ts';
import { tableNames, type Names } from './names.ts';
import type { Row } from './statements.ts';

/**
 * SQL that leads to a schema from the one before, the first from an empty schema. `minimum`: the oldest schema whose program
 * can still use the tables. The instances of an authority are not all replaced at once, so a migration only adds what the
 * new program needs. A later migration removes what no instance uses any more.
 */
export type Migration = { sql: string; minimum: number };

/** The migrations after the first schema. A released migration is never changed; a later change of the tables is another. */
const migrations: readonly Migration[] = [
  // 2: leases.
  {
    minimum: 1,
    sql: `ALTER TABLE latchkey.product
      ADD COLUMN seats bigint,
      ADD COLUMN lease_hold_ms bigint NOT NULL DEFAULT 7776000000,
      ADD COLUMN lease_term_ms bigint NOT NULL DEFAULT 2592000000,
      ADD COLUMN lease_refresh_ms bigint NOT NULL DEFAULT 86400000,
      ADD COLUMN lease_email boolean NOT NULL DEFAULT false;

    -- Devices that have asked for seats of a license.
    CREATE TABLE latchkey.activation (
      activation_id text COLLATE "C" PRIMARY KEY,
      license_key text COLLATE "C" NOT NULL,
      product_key text COLLATE "C" NOT NULL,
      -- The thumbprint (RFC 7638) of the key of the device.
      device text COLLATE "C" NOT NULL,
      device_name text COLLATE "C",
      state text COLLATE "C" NOT NULL CHECK (state IN ('active', 'ended', 'replaced', 'blocked')),
      -- The last request that was carried out, and its answer as JSON.
      seq bigint NOT NULL,
      digest text COLLATE "C" NOT NULL,
      answer text COLLATE "C" NOT NULL,
      rev bigint NOT NULL,
      expires_at bigint NOT NULL,
      seat_until bigint NOT NULL,
      uses_recorded bigint NOT NULL,
      uses_returned bigint NOT NULL,
      created_at bigint NOT NULL,
      renewed_at bigint NOT NULL,
      -- Instants, as JSON arrays.
      moved_at text COLLATE "C" NOT NULL,
      challenged_at text COLLATE "C" NOT NULL,
      copied_at bigint,
      UNIQUE (license_key, device)
    );
    CREATE INDEX activation_product ON latchkey.activation (product_key);
    -- The seats of a license are counted at each renewal.
    CREATE INDEX activation_seat ON latchkey.activation (license_key, seat_until) INCLUDE (activation_id);

    -- Requests for leases wait at any node for a change of their license or activation. The channel is that of names.ts.
    CREATE FUNCTION latchkey.announce_license() RETURNS trigger LANGUAGE plpgsql AS $body$
    BEGIN
      PERFORM pg_notify(
        'latchkey_' || left(encode(sha256(convert_to(TG_TABLE_SCHEMA, 'UTF8')), 'hex'), 24), NEW.license_key
      );
      RETURN NULL;
    END $body$;
    CREATE TRIGGER license_enabled AFTER UPDATE OF enabled ON latchkey.license
      FOR EACH ROW WHEN (OLD.enabled <> NEW.enabled) EXECUTE FUNCTION latchkey.announce_license();
    CREATE TRIGGER activation_state AFTER UPDATE OF state ON latchkey.activation
      FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION latchkey.announce_license();`,
  },
  // 3: the console.
  {
    minimum: 1,
    sql: `-- What happened in each minute of a day, and in each ten minutes of a month, at all nodes together.
    CREATE TABLE latchkey.series (
      step_s integer NOT NULL CHECK (step_s IN (60, 600)),
      -- When the step begins.
      at bigint NOT NULL,
      verifies bigint NOT NULL,
      uses bigint NOT NULL,
      -- Null: an authority has no outbox.
      pending bigint,
      oldest_age_s bigint,
      upstream text COLLATE "C",
      PRIMARY KEY (step_s, at)
    );`,
  },
  // 4: webhooks.
  {
    minimum: 1,
    sql: `CREATE TABLE latchkey.webhook_endpoint (
      endpoint_id text COLLATE "C" PRIMARY KEY,
      url text COLLATE "C" NOT NULL,
      -- The types of events, as a JSON array; null: all.
      types text COLLATE "C",
      -- Readable, because each message is signed with it.
      secret text COLLATE "C" NOT NULL,
      old_secret text COLLATE "C",
      old_secret_until bigint CHECK ((old_secret_until IS NULL) = (old_secret IS NULL)),
      state text COLLATE "C" NOT NULL CHECK (state IN ('active', 'paused')),
      -- The number of the last event that was delivered or that the endpoint does not get.
      position bigint NOT NULL,
      failures bigint NOT NULL CHECK (failures >= 0),
      failing_since bigint,
      next_at bigint,
      -- The delivery of a node that has the endpoint, and until when.
      claim text COLLATE "C",
      claimed_until bigint CHECK ((claimed_until IS NULL) = (claim IS NULL)),
      last_success_at bigint,
      last_error text COLLATE "C",
      created_at bigint NOT NULL
    );

    -- Events for endpoints. The number is at least the time in epoch ms.
    CREATE TABLE latchkey.webhook_event (
      number bigint PRIMARY KEY,
      event_id text COLLATE "C" NOT NULL UNIQUE,
      type text COLLATE "C" NOT NULL,
      -- A license key, or the id of an activation.
      subject text COLLATE "C",
      at bigint NOT NULL
    );

    -- The last result of each event at each endpoint.
    CREATE TABLE latchkey.webhook_delivery (
      endpoint_id text COLLATE "C" NOT NULL,
      number bigint NOT NULL,
      event_id text COLLATE "C" NOT NULL,
      type text COLLATE "C" NOT NULL,
      delivered boolean NOT NULL,
      attempts bigint NOT NULL,
      status bigint,
      error text COLLATE "C",
      duration_ms bigint NOT NULL,
      at bigint NOT NULL,
      PRIMARY KEY (endpoint_id, number)
    );
    CREATE INDEX webhook_delivery_number ON latchkey.webhook_delivery (number);
    CREATE INDEX activation_expiry ON latchkey.activation (expires_at) WHERE state = 'active';`,
  },
];

export function latchkeySchemas(): readonly Migration[] {
  return [{ sql: readSchema('postgres'), minimum: 1 }, ...migrations];
}

/** The number of the newest schema that this version knows. */
export const newestSchema: number = 1 + migrations.length;

/** The table with the number of the schema. */
const versionTable = 'schema_version';
/** The table that had it in previews, whose tables no version can use any more. */
const previewVersionTable = 'latchkey_schema';

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
    const present = await examine(database, schemas.length);
    if (present === null || present.version < schemas.length) {
      await database.lend(async (connection) => await migrateInTransaction(connection, schemas));
    }
  } catch (error) {
    throw refusalOf(error, database) ?? error;
  }
}

/** Examines a database that was migrated before. Rejects as `migrate` does if it can no longer be used. */
export async function examineExisting(asking: Asking): Promise<void> {
  if ((await examine(asking)) === null) {
    throw new PostgresRefused(`the tables in ${asking.names.schema} are gone: restore them, or start anew.`);
  }
}

/** Gives the version of the tables; null if there are none yet. Rejects as `migrate` does if they cannot be used. */
export async function examine(asking: Asking, newest = newestSchema): Promise<SchemaVersion | null> {
  await examineServer(asking);
  const present = await versionIn(asking);
  refuseNewer(present, newest);
  if (present !== null) await refuseWithoutRights(asking);
  return present;
}

async function examineServer({ query }: Asking): Promise<void> {
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
const called = ['change_licenses'];

async function refuseWithoutRights({ names, query }: Asking): Promise<void> {
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
export type Asking = Pick<Database, 'names' | 'query'>;

/** Null: the schema does not exist, or is empty. */
async function versionIn({ names, query }: Asking): Promise<SchemaVersion | null> {
  const [schemaState] = await query(
    `SELECT to_regclass($1::text) IS NOT NULL AS "isOurs", to_regclass($2::text) IS NOT NULL AS "isPreview", EXISTS
       (SELECT 1 FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace($3::text)) AS "isUsed"`,
    [names.of(versionTable), names.of(previewVersionTable), names.schema],
  );
  if (schemaState?.['isOurs'] !== true) {
    if (schemaState?.['isUsed'] !== true) return null;
    throw new PostgresRefused(
      schemaState['isPreview'] === true
        ? `the tables in ${names.schema} were written by a preview; this version cannot read them. Nothing was changed: choose another schema by store.postgres.schema, or go on with the preview.`
        : `the schema ${names.schema} holds something else: choose another by store.postgres.schema.`,
      { isConfigured: true },
    );
  }
  const [row] = await query(`SELECT version, minimum FROM ${names.of(versionTable)}`);
  return { version: Number(row?.['version'] ?? 0), minimum: Number(row?.['minimum'] ?? 0) };
}

function refuseNewer(present: SchemaVersion | null, newest: number): void {
  if (present === null || present.minimum <= newest) return;
  throw new PostgresRefused(
    `a newer Latchkey wrote it (schema ${present.version}, for versions that know at least ${present.minimum}; this version knows ${newest}): start a newer one.`,
  );
}

/** An open transaction. */
type Session = Asking & { execute: (text: string) => Promise<void> };

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
  refuseNewer(present, schemas.length);
  if (present === null) await createSchema(session);
  await applyMigrations(session, schemas.slice(present?.version ?? 0));
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
    INSERT INTO ${names.of(versionTable)} (version, minimum) VALUES (0, 0)`);
}

async function applyMigrations({ names, execute }: Session, missing: readonly Migration[]): Promise<void> {
  for (const { sql, minimum } of missing) {
    await execute(inSchema(names, sql));
    await execute(`UPDATE ${names.of(versionTable)} SET version = version + 1, minimum = ${minimum}`);
  }
}

/** SQL that names the configured schema instead of `latchkey`. */
function inSchema({ schema }: Names, sql: string): string {
  return sql.replaceAll('latchkey.', () => `${schema}.`);
}
