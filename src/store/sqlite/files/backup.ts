import { closeSync, openSync } from 'node:fs';
import { StorageError } from '../../../service/ports.ts';
import { storageFault } from '../faults.ts';
import { openReadOnly } from './read-only.ts';

/**
 * Writes a database as it stands at this moment to a new file, for its owner alone; whoever writes to it
 * meanwhile is not held up. (SQLite's own `backup()` would be, and fails when its first step meets a
 * transaction of its connection.) Throws `StorageError` when the disk is full; what was written is
 * left. The file is what `latchkey backup` hands on byte for byte: a backup of another form is made here.
 */
export function backUp(databasePath: string, path: string): void {
  try {
    // SQLite writes into an empty file; one of its own making would be readable by others.
    closeSync(openSync(path, 'wx', 0o600));
    using database = openReadOnly(databasePath);
    database.prepare('VACUUM INTO ?').run(path);
  } catch (error) {
    throw isFull(error) ? new StorageError('full', error) : error;
  }
}

function isFull(error: unknown): boolean {
  const isOfTheSystem = error instanceof Error && 'code' in error && error.code === 'ENOSPC';
  return isOfTheSystem || storageFault(error) === 'full';
}
