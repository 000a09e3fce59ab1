import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';

/**
 * Lets what SQLite must be able to undo, or has to sort, go into a file in the directory of the database as soon as it
 * is more than 64 KiB: in memory, each statement walks through all that there is, and /tmp may be full or not to be
 * written when the state directory is neither. The pragma is deprecated, but the only way that a thread of Node has.
 */
export function keepTemporaryFilesBeside(database: DatabaseSync): void {
  const path = database.location();
  if (path === null) return;
  const directory = dirname(path).replaceAll("'", "''");
  database.exec(`PRAGMA temp_store = FILE; PRAGMA temp_store_directory = '${directory}'`);
}
