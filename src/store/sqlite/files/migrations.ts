import { closeSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { firstSchema, readSchema } from '../../schema-file.ts';
import { DatabaseRefused, previewReason } from '../faults.ts';
import { openReadOnly, storeTemporaryFilesNextTo, syncFully } from '../database.ts';
import { createFile } from './private-file.ts';

/** The migrations after the first schema. A released migration is never changed; a later change of the tables is another. */
const migrations: readonly string[] = [];

/** The number of the newest schema that this version knows. `user_version` of a database has the number of its schema. */
export const newestSchema: number = firstSchema + migrations.length;

/** SQL that leads to each schema from the one before, the first from an empty database. */
export type Schemas = readonly string[];

export function latchkeySchemas(): Schemas {
  return [readSchema('store/sqlite/schema.sql'), ...migrations];
}

/** Called before a migration, which may take minutes. `copy`: where the database is kept as it was. */
export type OnMigration = (copy: string) => void;

/** Creates the tables in an empty database. */
export function createTables(database: DatabaseSync, schemas: Schemas = latchkeySchemas()): void {
  change(database, schemas, firstSchema - 1);
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
  const schema = knownSchemaOf(database, path, newestOf(schemas));
  if (schema === newestOf(schemas)) return;
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
  change(database, schemas, knownSchemaOf(database, original, newestOf(schemas)));
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
  for (const script of schemas.slice(schema - firstSchema + 1)) database.exec(script);
  database.exec(`PRAGMA user_version = ${newestOf(schemas)}`);
  database.exec('COMMIT');
}

function newestOf(schemas: Schemas): number {
  return firstSchema - 1 + schemas.length;
}

function schemaOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
}

function knownSchemaOf(database: DatabaseSync, path: string, newest: number): number {
  const schema = schemaOf(database);
  const newer = describeNewer(schema, newest);
  if (newer !== null) throw new DatabaseRefused(path, newer);
  if (schema < firstSchema || isOfPreview(database)) throw new DatabaseRefused(path, previewReason);
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
