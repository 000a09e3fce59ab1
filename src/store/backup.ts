import { closeSync, openSync } from 'node:fs';
import { backup } from 'node:sqlite';
import { StorageError } from '../service/ports.ts';
import type { WritingConnection } from './connection.ts';
import { storageFault } from './faults.ts';

/**
 * Writes a consistent copy of the database to a new file, for its owner alone, while writes go on.
 * Rejects with `StorageError` when there is no room for it; what was written by then is left.
 */
export async function backUp({ database }: WritingConnection, path: string): Promise<void> {
  try {
    // SQLite writes into an empty file; one of its own making would be readable by others.
    closeSync(openSync(path, 'wx', 0o600));
    await backup(database, path);
  } catch (error) {
    throw isFull(error) ? new StorageError('full', error) : error;
  }
}

function isFull(error: unknown): boolean {
  const isOfTheSystem = error instanceof Error && 'code' in error && error.code === 'ENOSPC';
  return isOfTheSystem || storageFault(error) === 'full';
}
