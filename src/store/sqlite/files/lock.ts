import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StateDirectoryHeld, storageFault } from '../faults.ts';
import { stateFiles } from './state-directory.ts';

/**
 * Holds a state directory for this process until disposed. The lock is an exclusive SQLite transaction on
 * a file of its own: the system frees it when the process ends, however it ends.
 */
export function holdDirectory(directory: string): Disposable {
  const path = join(directory, stateFiles.lock);
  createOnce(path);
  // SQLite opens what it may not write for reading, and then locks nothing.
  accessSync(path, constants.R_OK | constants.W_OK);
  // Two processes that ask at the very same instant would refuse each other if neither waited.
  const database = new DatabaseSync(path, { timeout: 250 });
  try {
    // A journal on disk would need room, and be left behind by a process that is killed.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    throw storageFault(error) === 'busy' ? new StateDirectoryHeld(directory, error) : error;
  }
  return { [Symbol.dispose]: () => database.close() };
}

/** Whether a process holds a state directory; false also where that cannot be told. */
export function isHeld(directory: string): boolean {
  try {
    const database = new DatabaseSync(join(directory, stateFiles.lock), { readOnly: true });
    try {
      database.exec('SELECT 1 FROM sqlite_schema');
      return false;
    } catch (error) {
      return storageFault(error) === 'busy';
    } finally {
      database.close();
    }
  } catch {
    return false;
  }
}

/** An existing lock file is not even opened: closing it would free this process's own lock on it. */
function createOnce(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}
