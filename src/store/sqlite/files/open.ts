import { accessSync, constants } from 'node:fs';
import { freeSpaceToStart, openWithReserve } from '../reserve.ts';
import { createDatabase, findDatabase } from './database-file.ts';
import {
  DatabaseRefused,
  restoreAdvice,
  StateDirectoryHeld,
  StateDirectoryRefused,
  StateDirectoryUnusable,
  storageFault,
  isCorruption,
} from '../faults.ts';
import { lockDirectory, databaseIn, findSafetyProblem } from './state-directory.ts';
import { makeDirectory } from './private-file.ts';
import { migrate, type OnMigration } from './migrations.ts';

/** A state directory that this process has locked, with a database of the present schema. */
export interface Store extends Disposable {
  /** For `openWriting` and `openReading`. Close their connections before you dispose the store. */
  readonly databasePath: string;
}

export type OpenOptions = { directory: string; onMigration?: OnMigration | undefined };

/**
 * Locks a state directory, and creates or migrates its database. Throws `StateDirectoryHeld`, `StateDirectoryUnusable`,
 * `StateDirectoryRefused` or `DatabaseRefused`.
 */
export function openStore({ directory, onMigration }: OpenOptions): Store {
  const databasePath = databaseIn(directory);
  const sqlite = process.versions['sqlite'] ?? '';
  if (!isRecent(sqlite)) throw new DatabaseRefused(databasePath, `SQLite ${sqlite} is older than 3.51.3.`);
  try {
    using starting = new DisposableStack();
    starting.use(claimDirectory(directory));
    openWithReserve(directory, () => {
      if (!findDatabase(databasePath)) createDatabase(databasePath);
      accessSync(databasePath, constants.R_OK | constants.W_OK);
      migrate(databasePath, { onMigration });
    });
    const open = starting.move();
    return { databasePath, [Symbol.dispose]: () => open.dispose() };
  } catch (error) {
    throw translate(error, { directory, databasePath });
  }
}

/**
 * Locks a state directory for this process until disposed; creates it if it is missing. Throws as `openStore` does, or
 * the error of the system.
 */
export function claimDirectory(directory: string): Disposable {
  makeDirectory(directory, 0o700);
  const problem = findSafetyProblem(directory, process.getuid?.() ?? null);
  if (problem !== null) throw new StateDirectoryRefused(directory, problem);
  accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
  freeSpaceToStart(directory);
  return lockDirectory(directory);
}

/** Versions before 3.51.3 can damage a database in WAL mode (https://sqlite.org/wal.html, "The WAL-reset bug"). */
function isRecent(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  return major > 3 || (major === 3 && (minor > 51 || (minor === 51 && patch >= 3)));
}

function translate(error: unknown, at: { directory: string; databasePath: string }): unknown {
  const isClear =
    error instanceof StateDirectoryHeld ||
    error instanceof StateDirectoryRefused ||
    error instanceof DatabaseRefused;
  if (isClear) return error;
  if (isCorruption(error)) {
    return new DatabaseRefused(at.databasePath, `it is damaged: ${restoreAdvice}`, error);
  }
  const isOfTheSystem = error instanceof Error && 'syscall' in error;
  return isOfTheSystem || storageFault(error) !== null
    ? new StateDirectoryUnusable(at.directory, error)
    : error;
}
