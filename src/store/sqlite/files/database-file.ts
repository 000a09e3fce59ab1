import { closeSync, existsSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { syncFully } from '../database.ts';
import { DatabaseRefused, previewReason, restoreAdvice } from '../faults.ts';
import { createTables } from './migrations.ts';
import { createFile, renameOver, syncDirectory } from './private-file.ts';

/** "LTCH" in the header of our databases (https://sqlite.org/fileformat.html#application_id). */
const applicationId = 0x4c_54_43_48;
/** "LKEY": the databases of previews, which this version cannot read. */
const previewApplicationId = 0x4c_4b_45_59;
const headerBytes = 100;
const applicationIdOffset = 68;

/** Whether there is a database. Throws `DatabaseRefused` if the file is not ours; changes nothing. */
export function findDatabase(path: string): boolean {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) {
    // SQLite would apply the old log to a new database.
    if (existsSync(`${path}-wal`)) {
      throw new DatabaseRefused(
        path,
        `it is missing, but its write-ahead log is there: put the file there again, or ${restoreAdvice}`,
      );
    }
    return false;
  }
  if (!status.isFile()) throw new DatabaseRefused(path, 'it is not a file.');
  if (status.size === 0) throw new DatabaseRefused(path, `it is empty: remove it, or ${restoreAdvice}`);
  const header = readHeader(path);
  if (!isSqlite(header)) {
    // A crash of the machine may have overwritten the first page with zeros.
    throw new DatabaseRefused(path, `it is damaged, or not an SQLite database: ${restoreAdvice}`);
  }
  const writer = header.readUInt32BE(applicationIdOffset);
  if (writer === previewApplicationId) throw new DatabaseRefused(path, previewReason);
  if (writer !== applicationId) throw new DatabaseRefused(path, 'another program wrote it.');
  return true;
}

/** Whether an open database is no longer at its path. False if this cannot be checked. */
export function isGone(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

/** Whether a file has the header of an SQLite database, ours or another. */
export function beginsAsDatabase(path: string): boolean {
  return isSqlite(readHeader(path));
}

const isSqlite = (header: Buffer): boolean => header.toString('latin1', 0, 16) === 'SQLite format 3\0';

/** Not read with SQLite, because SQLite may write to the file. */
function readHeader(path: string): Buffer {
  const header = Buffer.alloc(headerBytes);
  const file = openSync(path, 'r');
  try {
    readSync(file, header);
  } finally {
    closeSync(file);
  }
  return header;
}

/** Creates the database under another name first, so that a crash never leaves an incomplete database. */
export function createDatabase(path: string): void {
  const draft = `${path}.new`;
  rmSync(`${draft}-journal`, { force: true });
  closeSync(createFile(draft));
  const database = new DatabaseSync(draft);
  try {
    syncFully(database);
    database.exec(`PRAGMA application_id = ${applicationId}`);
    createTables(database);
  } finally {
    database.close();
  }
  renameOver(draft, path);
  syncDirectory(dirname(path));
}
