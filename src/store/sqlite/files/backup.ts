import {
  closeSync,
  openSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { StorageError } from '../../../service/ports.ts';
import { storageFault, DatabaseRefused, StateDirectoryUnusable, isCorruption } from '../faults.ts';
import { openReadOnly } from '../database.ts';
import { beginsAsDatabase, findDatabase } from './database-file.ts';
import { migrateCopy } from './migrations.ts';
import { renameOver, syncDirectory } from './private-file.ts';
import { databaseIn, stateFiles } from './state-directory.ts';

/**
 * Writes a snapshot of a database to a new file with mode 600, without blocking writers. (SQLite's own `backup()` blocks them,
 * and fails if its first step meets a transaction of its connection.) Throws `StorageError` if the disk is full, and
 * leaves the incomplete file. `latchkey backup` delivers the file byte for byte.
 */
export function backUp(databasePath: string, path: string): void {
  try {
    // SQLite writes into an existing empty file. A file that it creates itself would be readable by others.
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

/** A copy of a backup in a state directory. Disposing it removes the copy, unless `putInPlace` has moved it. */
interface Draft extends Disposable {
  /** A database of the present schema, for `openWriting`. */
  readonly path: string;
}

/** Refuses a file that cannot be a backup. The errors do not advise to restore a backup. */
export function checkBackup(path: string): void {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) throw new DatabaseRefused(path, 'there is no such file.');
  if (status.size === 0) throw new DatabaseRefused(path, 'it is empty.');
  if (status.isFile() && !beginsAsDatabase(path)) {
    throw new DatabaseRefused(path, 'it is not an SQLite database.');
  }
  findDatabase(path);
}

/**
 * Copies a backup into a directory that no other process uses, checks the copy and migrates it. Only reads the backup.
 * Throws `DatabaseRefused` if the backup is not an intact database of Latchkey.
 */
export function draftFrom(backup: string, directory: string): Draft {
  checkBackup(backup);
  const path = `${databaseIn(directory)}.new`;
  const remove = (): void => {
    for (const file of [path, `${path}-wal`, `${path}-shm`]) rmSync(file, { force: true });
  };
  using drafting = new DisposableStack();
  drafting.defer(remove);
  remove();
  copyPrivately(backup, path);
  // A state directory that was copied while a daemon ran has its latest changes in the write-ahead log.
  if (existsSync(`${backup}-wal`)) copyPrivately(`${backup}-wal`, `${path}-wal`);
  // Check the copy, not the backup, because SQLite creates files beside a database that it opens.
  const damage = damageOf(path, directory);
  if (damage !== null) throw new DatabaseRefused(backup, `it is damaged: ${damage}`);
  migrateCopy(path, backup);
  const draft = drafting.move();
  return { path, [Symbol.dispose]: () => draft.dispose() };
}

function damageOf(draft: string, directory: string): string | null {
  try {
    return findDamage(draft);
  } catch (error) {
    throw new StateDirectoryUnusable(directory, error);
  }
}

/**
 * Replaces the database of a directory by a draft, which must be closed. Keeps the old database and its write-ahead log
 * beside it, without reading them: they may be damaged. Returns the paths of the kept files.
 */
export function putInPlace({ path: draft }: Draft, directory: string): readonly string[] {
  const path = databaseIn(directory);
  const log = `${path}-wal`;
  const files = [...(existsSync(path) ? [path] : []), ...(sizeOf(log) > 0 ? [log] : [])];
  const beside = freeNameBeside(path);
  const kept = files.map((file) => file.replace(path, beside));
  for (const [index, file] of files.entries()) renameOver(file, kept[index] ?? '');
  for (const file of [log, `${path}-shm`]) rmSync(file, { force: true });
  renameOver(draft, path);
  syncDirectory(directory);
  return kept;
}

function copyPrivately(from: string, to: string): void {
  copyFileSync(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  chmodSync(to, 0o600);
}

/** The old databases that `putInPlace` has moved aside in a directory. */
export function findReplaced(directory: string): readonly string[] {
  if (!existsSync(directory)) return [];
  const pattern = new RegExp(String.raw`^${RegExp.escape(stateFiles.database)}\.replaced(-\d+)?$`);
  return readdirSync(directory)
    .filter((name) => pattern.test(name))
    .map((name) => join(directory, name));
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** A replaced database may be the only one with some changes, so it is never overwritten. */
function freeNameBeside(path: string): string {
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? `${path}.replaced` : `${path}.replaced-${count}`;
    if (!existsSync(name) && !existsSync(`${name}-wal`)) return name;
  }
}

/**
 * Checks a whole database, even while another process writes to it. Returns what is wrong, or null. Throws if the database
 * cannot be read for another reason, such as a full disk or too many open files: restoring a backup would not help.
 */
export function findDamage(databasePath: string): string | null {
  try {
    using database = openReadOnly(databasePath);
    const verdict = database.prepare('PRAGMA quick_check(1)').get()?.['quick_check'];
    // SQLite prints several lines below a headline.
    return verdict === 'ok'
      ? null
      : String(verdict)
          .replace(/^\*{3}.*\*{3}\n/, '')
          .trim()
          .replaceAll(/\s+/g, ' ');
  } catch (error) {
    if (error instanceof Error && isCorruption(error)) return error.message;
    throw error;
  }
}
