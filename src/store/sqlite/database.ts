import { DatabaseSync } from 'node:sqlite';
import { dirname } from 'node:path';

/* What is done with a database whatever its tables. The thread that copies files needs no more. */

/**
 * Makes a commit wait until its data is on the disk. On macOS, a plain fsync leaves the data in the cache of the disk,
 * where a power cut loses it.
 */
export function syncFully(database: DatabaseSync, platform: NodeJS.Platform = process.platform): void {
  database.exec('PRAGMA synchronous = FULL');
  if (platform === 'darwin') database.exec('PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON');
}

/**
 * Makes SQLite write statement journals and sorts above 64 KiB to files in the directory of the database. In memory,
 * each statement would walk through the whole journal, and /tmp may be full or read-only when the state directory is
 * not. The pragma is deprecated, but there is no other way for a single thread.
 */
export function storeTemporaryFilesNextTo(database: DatabaseSync): void {
  const path = database.location();
  if (path === null) return;
  const directory = dirname(path).replaceAll("'", "''");
  database.exec(`PRAGMA temp_store = FILE; PRAGMA temp_store_directory = '${directory}'`);
}

/** How long to wait for a lock of another program, in ms. */
const lockWaitMs = 1_000;

/** Opens a database for reading. Another process may write to it at the same time. */
export function openReadOnly(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: lockWaitMs });
}
