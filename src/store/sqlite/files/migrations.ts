import { closeSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { readSchema } from '../../schema-file.ts';
import { DatabaseRefused } from '../faults.ts';
import { keepTemporaryFilesNextTo, openReadOnly } from '../connection.ts';
import { createFile } from './private-file.ts';

/**
 * The migrations from schema 1 (`schema.sql`) to the present schema, in SQL: the first leads to schema 2. A released migration
 * is never changed; a later change of the tables is another migration.
 */
export const migrations: readonly string[] = [];

/** The number of the newest schema that this version knows. `user_version` of a database has the number of its schema. */
export const newestSchema: number = numberOfNewest(migrations);

/** Called before a migration, which may take minutes. `copy`: where the database is kept as it was. */
export type OnMigration = (copy: string) => void;

/** Creates the tables in an empty database. */
export function createTables(database: DatabaseSync, added: readonly string[] = migrations): void {
  change(database, [readSchema('sqlite'), ...added], numberOfNewest(added));
}

/**
 * Migrates a database to the present schema. Keeps a copy of an older database beside it, named after the number of
 * its schema; removes the copy if the migration fails. Refuses a database that is newer than this version.
 */
export function migrate(
  path: string,
  added: readonly string[] = migrations,
  onMigration: OnMigration = () => undefined,
): void {
  using database = new DatabaseSync(path, { timeout: 1000 });
  const schema = knownSchemaOf(database, path, added);
  if (schema === numberOfNewest(added)) return;
  const copy = `${path}.schema-${schema}`;
  onMigration(copy);
  try {
    // VACUUM INTO writes into an existing empty file. A file that it creates itself would be readable by others.
    closeSync(createFile(copy));
    database.prepare('VACUUM INTO ?').run(copy);
    applyMigrations(database, schema, added);
  } catch (error) {
    // The database is unchanged, and the older version can use it. A full disk must not keep the copy as well.
    for (const file of [copy, `${copy}-journal`]) rmSync(file, { force: true });
    throw error;
  }
}

/** Migrates a copy of a database without keeping another copy. `original`: the path that an error names. */
export function migrateCopy(path: string, original: string, added: readonly string[] = migrations): void {
  using database = new DatabaseSync(path, { timeout: 1000 });
  applyMigrations(database, knownSchemaOf(database, original, added), added);
}

/** Says how a database is newer than this version; null if it is not. Changes nothing. */
export function findNewerSchema(path: string): string | null {
  using database = openReadOnly(path);
  return describeNewer(schemaOf(database), migrations);
}

function numberOfNewest(added: readonly string[]): number {
  return 1 + added.length;
}

function applyMigrations(database: DatabaseSync, schema: number, added: readonly string[]): void {
  change(database, added.slice(schema - 1), numberOfNewest(added));
}

/** Runs scripts and writes the number of the new schema, all in one transaction. */
function change(database: DatabaseSync, scripts: readonly string[], schema: number): void {
  keepTemporaryFilesNextTo(database);
  database.exec('BEGIN IMMEDIATE');
  for (const script of scripts) database.exec(script);
  database.exec(`PRAGMA user_version = ${schema}`);
  database.exec('COMMIT');
}

function schemaOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
}

function knownSchemaOf(database: DatabaseSync, path: string, added: readonly string[]): number {
  const schema = schemaOf(database);
  const newer = describeNewer(schema, added);
  if (newer !== null) throw new DatabaseRefused(path, newer);
  return schema;
}

function describeNewer(schema: number, added: readonly string[]): string | null {
  const newest = numberOfNewest(added);
  if (schema <= newest) return null;
  return `a newer Latchkey wrote it (schema ${schema}; this version knows ${newest}).`;
}
