import { closeSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { readSchema } from '../../schema-file.ts';
import { DatabaseRefused, previewReason } from '../faults.ts';
import { openReadOnly, storeTemporaryFilesNextTo, syncFully } from '../connection.ts';
import { outboxOf5 } from './outbox-migration.ts';
import { createFile } from './private-file.ts';

/** The migrations after the first schema. A released migration is never changed; a later change of the tables is another. */
const migrations: readonly string[] = [
  // 2: leases.
  `ALTER TABLE product ADD COLUMN seats INTEGER;
  ALTER TABLE product ADD COLUMN lease_hold_ms INTEGER NOT NULL DEFAULT 7776000000;
  ALTER TABLE product ADD COLUMN lease_term_ms INTEGER NOT NULL DEFAULT 2592000000;
  ALTER TABLE product ADD COLUMN lease_refresh_ms INTEGER NOT NULL DEFAULT 86400000;
  ALTER TABLE product ADD COLUMN lease_email INTEGER NOT NULL DEFAULT 0 CHECK (lease_email IN (0, 1));

  -- Devices that have asked for seats of a license, at an issuer.
  CREATE TABLE activation (
    activation_id TEXT PRIMARY KEY NOT NULL,
    license_key TEXT NOT NULL,
    product_key TEXT NOT NULL,
    -- The thumbprint (RFC 7638) of the key of the device.
    device TEXT NOT NULL,
    device_name TEXT,
    state TEXT NOT NULL CHECK (state IN ('active', 'ended', 'replaced', 'blocked')),
    -- The last request that was carried out, and its answer as JSON.
    seq INTEGER NOT NULL,
    digest TEXT NOT NULL,
    answer TEXT NOT NULL,
    rev INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    seat_until INTEGER NOT NULL,
    uses_recorded INTEGER NOT NULL,
    uses_returned INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    -- Instants, as JSON arrays.
    moved_at TEXT NOT NULL,
    challenged_at TEXT NOT NULL,
    copied_at INTEGER,
    UNIQUE (license_key, device)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX activation_product ON activation (product_key);
  -- The seats of a license are counted at each renewal.
  CREATE INDEX activation_seat ON activation (license_key, seat_until);

  -- The leases of a holder, and its requests to the issuer.
  CREATE TABLE held_lease (
    license_key TEXT PRIMARY KEY NOT NULL,
    product_key TEXT NOT NULL,
    activation_id TEXT,
    -- The signed document, and the members that responses need, as JSON.
    document TEXT,
    rev INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    -- The signed request that is repeated until it is answered, as JSON.
    request TEXT,
    uses_recorded INTEGER NOT NULL,
    uses_returned INTEGER NOT NULL,
    confirmed_recorded INTEGER NOT NULL,
    confirmed_returned INTEGER NOT NULL,
    wanted TEXT NOT NULL CHECK (wanted IN ('active', 'ended')),
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;`,
  // 3: the console.
  `-- What happened in each minute of a day, and in each ten minutes of a month.
  CREATE TABLE series (
    step_s INTEGER NOT NULL CHECK (step_s = 60 OR step_s = 600),
    -- When the step begins.
    at INTEGER NOT NULL,
    verifies INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    -- Null: there is no outbox.
    pending INTEGER,
    oldest_age_s INTEGER,
    upstream TEXT CHECK (upstream IN ('unknown', 'up', 'paused', 'down')),
    PRIMARY KEY (step_s, at)
  ) STRICT, WITHOUT ROWID;

  -- An agent finds the licenses of a buyer.
  CREATE INDEX license_snapshot_buyer ON license_snapshot (lower(buyer_email));`,
  // 4: webhooks.
  `CREATE TABLE webhook_endpoint (
    endpoint_id TEXT PRIMARY KEY NOT NULL,
    url TEXT NOT NULL,
    -- The types of events, as a JSON array; null: all.
    types TEXT,
    -- Readable, because each message is signed with it.
    secret TEXT NOT NULL,
    old_secret TEXT,
    old_secret_until INTEGER CHECK ((old_secret_until IS NULL) = (old_secret IS NULL)),
    state TEXT NOT NULL CHECK (state IN ('active', 'paused')),
    -- The number of the last event that was delivered or that the endpoint does not get.
    position INTEGER NOT NULL,
    failures INTEGER NOT NULL CHECK (failures >= 0),
    failing_since INTEGER,
    next_at INTEGER,
    -- The delivery that has the endpoint, and until when.
    claim TEXT,
    claimed_until INTEGER CHECK ((claimed_until IS NULL) = (claim IS NULL)),
    last_success_at INTEGER,
    last_error TEXT,
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- Events for endpoints. The number is at least the time in epoch ms.
  CREATE TABLE webhook_event (
    number INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    -- A license key, or the id of an activation or of an operation.
    subject TEXT,
    at INTEGER NOT NULL
  ) STRICT;

  -- The last result of each event at each endpoint.
  CREATE TABLE webhook_delivery (
    endpoint_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    delivered INTEGER NOT NULL CHECK (delivered IN (0, 1)),
    attempts INTEGER NOT NULL,
    status INTEGER,
    error TEXT,
    duration_ms INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (endpoint_id, number)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX webhook_delivery_number ON webhook_delivery (number);
  CREATE INDEX activation_expiry ON activation (expires_at) WHERE state = 'active';`,
  // 5: /sync/v1.
  `-- Grows by 1 with each change of the count or of the state, and with each refund.
  ALTER TABLE license ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
  -- The revision at which the license was last disabled or refunded.
  ALTER TABLE license ADD COLUMN disabled_revision INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE redemption ADD COLUMN over_limit INTEGER NOT NULL DEFAULT 0 CHECK (over_limit IN (0, 1));

  -- Agents that follow license keys: a row for each reach (account/product) of their credentials.
  CREATE TABLE sync_agent (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_id TEXT NOT NULL,
    reach TEXT NOT NULL,
    account_id TEXT NOT NULL,
    product_key TEXT,
        followed INTEGER NOT NULL CHECK (followed >= 0),
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    UNIQUE (agent_id, reach)
  ) STRICT;
  CREATE INDEX sync_agent_account ON sync_agent (account_id);
  CREATE INDEX sync_agent_seen ON sync_agent (seen_at) WHERE followed > 0;
  CREATE INDEX sync_agent_idle ON sync_agent (seen_at);

  CREATE TABLE sync_follow (
    agent INTEGER NOT NULL,
    license_key TEXT NOT NULL,
    PRIMARY KEY (agent, license_key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sync_follow_license ON sync_follow (license_key);

  -- The last change of each license that an agent follows or has followed.
  CREATE TABLE license_change (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    license_key TEXT NOT NULL UNIQUE
  ) STRICT;
  -- A trigger cannot say OR REPLACE: the clause of the statement that causes it would hold instead.
  CREATE TRIGGER license_changed AFTER UPDATE OF revision ON license
  WHEN EXISTS (SELECT 1 FROM sync_follow WHERE license_key = new.license_key) BEGIN
    DELETE FROM license_change WHERE license_key = new.license_key;
    INSERT INTO license_change (license_key) VALUES (new.license_key);
  END;
  CREATE TRIGGER license_added AFTER INSERT ON license
  WHEN EXISTS (SELECT 1 FROM sync_follow WHERE license_key = new.license_key) BEGIN
    DELETE FROM license_change WHERE license_key = new.license_key;
    INSERT INTO license_change (license_key) VALUES (new.license_key);
  END;
  -- The same on an agent, for the agents below it.
  CREATE TRIGGER license_snapshot_changed
  AFTER UPDATE OF local_uses, local_enabled, gone, product_key, product_link, buyer_email, created_at ON license_snapshot
  WHEN (new.local_uses <> old.local_uses OR new.local_enabled <> old.local_enabled OR new.gone <> old.gone
      OR new.product_key <> old.product_key OR new.product_link <> old.product_link
      OR new.buyer_email <> old.buyer_email OR new.created_at <> old.created_at)
    AND EXISTS (SELECT 1 FROM sync_follow WHERE license_key = new.license_key) BEGIN
    DELETE FROM license_change WHERE license_key = new.license_key;
    INSERT INTO license_change (license_key) VALUES (new.license_key);
  END;
  CREATE TRIGGER license_snapshot_added AFTER INSERT ON license_snapshot
  WHEN EXISTS (SELECT 1 FROM sync_follow WHERE license_key = new.license_key) BEGIN
    DELETE FROM license_change WHERE license_key = new.license_key;
    INSERT INTO license_change (license_key) VALUES (new.license_key);
  END;
  CREATE TRIGGER license_snapshot_removed AFTER DELETE ON license_snapshot
  WHEN EXISTS (SELECT 1 FROM sync_follow WHERE license_key = old.license_key) BEGIN
    DELETE FROM license_change WHERE license_key = old.license_key;
    INSERT INTO license_change (license_key) VALUES (old.license_key);
  END;

  ${outboxOf5}

  -- 1: the upstream says what changes about the key.
  -- The revision of the license at the upstream, and the number of the history of the upstream that it belongs to.
  ALTER TABLE license_snapshot ADD COLUMN revision INTEGER;
  ALTER TABLE license_snapshot ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
  -- Grows with each change of what callers see; and the number when the key was last turned off.
  ALTER TABLE license_snapshot ADD COLUMN shown_revision INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE license_snapshot ADD COLUMN shown_disabled_revision INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE license_snapshot ADD COLUMN followed INTEGER NOT NULL DEFAULT 0 CHECK (followed = 0 OR followed = 1);
  CREATE INDEX license_snapshot_to_follow ON license_snapshot (product_key)
    WHERE followed = 0 AND refresh_at IS NOT NULL AND gone = 0 AND read_first = 0 AND missing_since IS NULL;
  CREATE INDEX license_snapshot_to_unfollow ON license_snapshot (product_key)
    WHERE followed = 1 AND refresh_at IS NULL;
  CREATE INDEX license_snapshot_followed ON license_snapshot (product_key) WHERE followed = 1;
  CREATE INDEX license_snapshot_missing ON license_snapshot (missing_since)
    WHERE missing_since IS NOT NULL AND gone = 0;

  -- What the upstream last said about the followed keys of each product.
  CREATE TABLE follow (
    product_key TEXT PRIMARY KEY NOT NULL,
    epoch TEXT NOT NULL,
    cursor TEXT NOT NULL,
    confirmed_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;`,
];

/** The number of the newest schema that this version knows. `user_version` of a database has the number of its schema. */
export const newestSchema: number = 1 + migrations.length;

/** SQL that leads to each schema from the one before, the first from an empty database. */
export type Schemas = readonly string[];

export function latchkeySchemas(): Schemas {
  return [readSchema('sqlite'), ...migrations];
}

/** Called before a migration, which may take minutes. `copy`: where the database is kept as it was. */
export type OnMigration = (copy: string) => void;

/** Creates the tables in an empty database. */
export function createTables(database: DatabaseSync, schemas: Schemas = latchkeySchemas()): void {
  change(database, schemas, 0);
}

type MigrationOptions = { schemas?: Schemas; onMigration?: OnMigration | undefined };

/**
 * Migrates a database to the newest schema. Keeps a copy of an older database beside it, named after the number of
 * its schema; removes the copy if the migration fails. Refuses a database that is newer than this version.
 */
export function migrate(
  path: string,
  { schemas = latchkeySchemas(), onMigration }: MigrationOptions = {},
): void {
  using database = new DatabaseSync(path, { timeout: 1000 });
  const schema = knownSchemaOf(database, path, schemas.length);
  if (schema === schemas.length) return;
  syncFully(database);
  const copy = `${path}.schema-${schema}`;
  onMigration?.(copy);
  try {
    // VACUUM INTO writes into an existing empty file. A file that it creates itself would be readable by others.
    closeSync(createFile(copy));
    database.prepare('VACUUM INTO ?').run(copy);
    change(database, schemas, schema);
  } catch (error) {
    // The database is unchanged, and the older version can use it. A full disk must not keep the copy as well.
    for (const file of [copy, `${copy}-journal`]) rmSync(file, { force: true });
    throw error;
  }
}

/** Migrates a copy of a database without keeping another copy. `original`: the path that an error names. */
export function migrateCopy(path: string, original: string, schemas: Schemas = latchkeySchemas()): void {
  using database = new DatabaseSync(path, { timeout: 1000 });
  syncFully(database);
  change(database, schemas, knownSchemaOf(database, original, schemas.length));
}

/** Says how a database is newer than this version; null if it is not. Changes nothing. */
export function findNewerSchema(path: string): string | null {
  using database = openReadOnly(path);
  return describeNewer(schemaOf(database), newestSchema);
}

/** Changes a database of a schema to the newest, in one transaction. */
function change(database: DatabaseSync, schemas: Schemas, schema: number): void {
  storeTemporaryFilesNextTo(database);
  database.exec('BEGIN IMMEDIATE');
  for (const script of schemas.slice(schema)) database.exec(script);
  database.exec(`PRAGMA user_version = ${schemas.length}`);
  database.exec('COMMIT');
}

function schemaOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
}

function knownSchemaOf(database: DatabaseSync, path: string, newest: number): number {
  const schema = schemaOf(database);
  const newer = describeNewer(schema, newest);
  if (newer !== null) throw new DatabaseRefused(path, newer);
  if (isOfPreview(database)) throw new DatabaseRefused(path, previewReason);
  return schema;
}

/** Previews had this table in their schema 5. */
function isOfPreview(database: DatabaseSync): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'sync_operation'").get() !== undefined;
}

function describeNewer(schema: number, newest: number): string | null {
  if (schema <= newest) return null;
  return `a newer Latchkey wrote it (schema ${schema}; this version knows ${newest}).`;
}
