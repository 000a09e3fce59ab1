import { accessSync, constants } from 'node:fs';
import { freeSpaceToStart, openWithRoom } from '../reserve.ts';
import { createDatabase, findDatabase } from './database-file.ts';
import {
  DatabaseRefused,
  restoreAdvice,
  StateDirectoryHeld,
  StateDirectoryRefused,
  StateDirectoryUnusable,
  storageFault,
  tellsDamage,
} from '../faults.ts';
import { holdDirectory } from './lock.ts';
import { makeDirectory } from './private-file.ts';
import { migrate, migrations, type OnMigration } from './migrations.ts';
import { databaseIn, findIntrusion } from './state-directory.ts';

/** A state directory that this process holds, with a database of the present schema in it. */
export interface Store extends Disposable {
  /** For `openWriting` and `openReading`; close what they give before the store is disposed. */
  readonly databasePath: string;
}

export type OpenOptions = { directory: string; onMigration?: OnMigration | undefined };

/**
 * Takes a state directory into use: makes it and its database when there is none, migrates an older one.
 * Throws `StateDirectoryHeld`, `StateDirectoryUnusable`, `StateDirectoryRefused` or `DatabaseRefused`.
 */
export function openStore({ directory, onMigration }: OpenOptions): Store {
  const databasePath = databaseIn(directory);
  const sqlite = process.versions['sqlite'] ?? '';
  if (!isRecent(sqlite)) throw new DatabaseRefused(databasePath, `SQLite ${sqlite} is older than 3.51.3.`);
  try {
    using starting = new DisposableStack();
    starting.use(takeDirectory(directory));
    openWithRoom(directory, () => {
      if (!findDatabase(databasePath)) createDatabase(databasePath);
      accessSync(databasePath, constants.R_OK | constants.W_OK);
      migrate(databasePath, migrations, onMigration);
    });
    const held = starting.move();
    return { databasePath, [Symbol.dispose]: () => held.dispose() };
  } catch (error) {
    throw refusal(error, { directory, databasePath });
  }
}

/**
 * Holds a state directory for this process until disposed; makes it where there is none. Throws as
 * `openStore` does, or the system's own error.
 */
export function takeDirectory(directory: string): Disposable {
  makeDirectory(directory, 0o700);
  const intrusion = findIntrusion(directory, process.getuid?.() ?? null);
  if (intrusion !== null) throw new StateDirectoryRefused(directory, intrusion);
  accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
  freeSpaceToStart(directory);
  return holdDirectory(directory);
}

/** Versions before 3.51.3 can damage a database in WAL mode (https://sqlite.org/wal.html, "The WAL-reset bug"). */
function isRecent(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  return major > 3 || (major === 3 && (minor > 51 || (minor === 51 && patch >= 3)));
}

function refusal(error: unknown, at: { directory: string; databasePath: string }): unknown {
  const isClear =
    error instanceof StateDirectoryHeld ||
    error instanceof StateDirectoryRefused ||
    error instanceof DatabaseRefused;
  if (isClear) return error;
  if (tellsDamage(error)) {
    return new DatabaseRefused(at.databasePath, `it is damaged: ${restoreAdvice}`, error);
  }
  const isOfTheSystem = error instanceof Error && 'syscall' in error;
  return isOfTheSystem || storageFault(error) !== null
    ? new StateDirectoryUnusable(at.directory, error)
    : error;
}
