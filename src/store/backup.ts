import { closeSync, openSync } from 'node:fs';
import { backup } from 'node:sqlite';
import type { WritingConnection } from './connection.ts';

/** Writes a consistent copy of the database to a new file, for its owner alone, while writes go on. */
export async function backUp({ database }: WritingConnection, path: string): Promise<void> {
  // SQLite writes into an empty file; one of its own making would be readable by others.
  closeSync(openSync(path, 'wx', 0o600));
  await backup(database, path);
}
