import { chmodSync, copyFileSync, existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { findDatabase } from './database-file.ts';
import { DatabaseRefused } from './faults.ts';

/**
 * Puts a backup in the place of a state directory's database; what was there is kept beside it as
 * `latchkey.db.replaced`. The directory must be held. Throws `DatabaseRefused` when the file is no sound
 * database of ours.
 */
export function putBack(backup: string, directory: string): void {
  if (!findDatabase(backup)) throw new DatabaseRefused(backup, 'there is no such file.');
  checkSound(backup);
  const path = join(directory, 'latchkey.db');
  const draft = `${path}.new`;
  copyFileSync(backup, draft);
  chmodSync(draft, 0o600);
  if (existsSync(path)) {
    foldLog(path);
    renameSync(path, `${path}.replaced`);
  }
  for (const left of [`${path}-wal`, `${path}-shm`]) rmSync(left, { force: true });
  renameSync(draft, path);
}

function checkSound(path: string): void {
  using database = new DatabaseSync(path, { readOnly: true });
  const verdict = database.prepare('PRAGMA quick_check(1)').get()?.['quick_check'];
  if (verdict !== 'ok') throw new DatabaseRefused(path, `it is damaged: ${String(verdict)}`);
}

/** Brings what lies in the write-ahead log into the database, so that one file is all of it. */
function foldLog(path: string): void {
  try {
    using database = new DatabaseSync(path);
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } catch {
    // A damaged database is what a backup is put back for; it is kept as it is.
  }
}
