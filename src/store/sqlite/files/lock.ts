import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StateDirectoryHeld, storageFault } from '../faults.ts';
import { stateFiles } from './state-directory.ts';

/**
 * Locks a state directory for this process until disposed. The lock is an exclusive SQLite transaction on a separate
 * file. The operating system releases it when the process ends for any reason.
 */
export function lockDirectory(directory: string): Disposable {
  const path = join(directory, stateFiles.lock);
  createIfMissing(path);
  // SQLite opens a file without write permission for reading, and then locks nothing.
  accessSync(path, constants.R_OK | constants.W_OK);
  // Two processes that lock at the same instant would reject each other if they did not wait.
  const database = new DatabaseSync(path, { timeout: 250 });
  try {
    // A journal on disk would need space, and a killed process would leave it behind.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    throw storageFault(error) === 'busy' ? new StateDirectoryHeld(directory, error) : error;
  }
  return { [Symbol.dispose]: () => database.close() };
}

/** Whether a process has locked a state directory; false if this cannot be checked. */
export function isLocked(directory: string): boolean {
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

/** Never opens an existing lock file: closing it would release this process's own lock on it. */
function createIfMissing(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}
