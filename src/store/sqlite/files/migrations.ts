import { closeSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { DatabaseRefused } from '../faults.ts';
import { keepTemporaryFilesBeside } from '../temporary-files.ts';
import { createFile } from './private-file.ts';
import { openReadOnly } from './read-only.ts';
import { schema1 } from './schema/schema-1.ts';
import { schema2 } from './schema/schema-2.ts';
import { schema3 } from './schema/schema-3.ts';
import { schema4 } from './schema/schema-4.ts';
import { schema5 } from './schema/schema-5.ts';
import { schema6 } from './schema/schema-6.ts';
import { schema7 } from './schema/schema-7.ts';
import { schema8 } from './schema/schema-8.ts';

/** The steps from an empty database to the present schema; `user_version` counts those that were taken. */
export const migrations: readonly string[] = [
  schema1,
  schema2,
  schema3,
  schema4,
  schema5,
  schema6,
  schema7,
  schema8,
];

/** Takes the steps that a database still lacks, all in one transaction. */
export function takeSteps(database: DatabaseSync, taken: number, steps: readonly string[]): void {
  keepTemporaryFilesBeside(database);
  database.exec('BEGIN IMMEDIATE');
  for (const step of steps.slice(taken)) database.exec(step);
  database.exec(`PRAGMA user_version = ${steps.length}`);
  database.exec('COMMIT');
}

/** Told before a database is migrated, which may take minutes; `copy`: where it is kept as it was. */
export type OnMigration = (copy: string) => void;

/**
 * Brings a database of ours up to the present schema. A copy of an older one is left beside it, named
 * after the schema it has, and none where the migration fails; one that is newer than this version knows is refused.
 */
export function migrate(
  path: string,
  steps: readonly string[] = migrations,
  onMigration: OnMigration = () => undefined,
): void {
  using database = new DatabaseSync(path, { timeout: 1000 });
  const taken = schemaOf(database);
  const newer = describeNewer(taken, steps);
  if (newer !== null) throw new DatabaseRefused(path, newer);
  if (taken === steps.length) return;
  const copy = `${path}.schema-${taken}`;
  onMigration(copy);
  try {
    // VACUUM INTO writes into an empty file, and one of its own making would be readable by others.
    closeSync(createFile(copy));
    database.prepare('VACUUM INTO ?').run(copy);
    takeSteps(database, taken, steps);
  } catch (error) {
    // The database is as it was, and goes on with the older version: on a full disk, not beside a copy.
    for (const file of [copy, `${copy}-journal`]) rmSync(file, { force: true });
    throw error;
  }
}

/** Does the same with a copy, of which no other needs to be left; `original` is what it was made of. */
export function migrateCopy(path: string, original: string): void {
  using database = new DatabaseSync(path, { timeout: 1000 });
  const taken = schemaOf(database);
  const newer = describeNewer(taken, migrations);
  if (newer !== null) throw new DatabaseRefused(original, newer);
  takeSteps(database, taken, migrations);
}

/** Says how a database is newer than this version knows; null when it is not. Changes nothing in it. */
export function findNewerSchema(path: string): string | null {
  using database = openReadOnly(path);
  return describeNewer(schemaOf(database), migrations);
}

function schemaOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
}

function describeNewer(taken: number, steps: readonly string[]): string | null {
  if (taken <= steps.length) return null;
  return `a newer Latchkey made it (schema ${taken}; this one knows ${steps.length}).`;
}
