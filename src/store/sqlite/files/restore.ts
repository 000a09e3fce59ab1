import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beginsAsDatabase, findDatabase, syncDirectory } from './database-file.ts';
import { checkpoint } from '../connection.ts';
import { DatabaseRefused, StateDirectoryUnusable } from '../faults.ts';
import { findDamage } from './damage.ts';
import { migrateCopy } from './migrations.ts';
import { databaseIn, stateFiles } from './state-directory.ts';

/** A backup on its way into a state directory: removed when disposed before it was put in place. */
export interface Draft extends Disposable {
  /** A database of the present schema, for `openWriting`. */
  readonly path: string;
}

/** Refuses a file that cannot be a backup: nothing is advised about it, since there is nothing to restore instead. */
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
 * Copies a database into a directory that nobody else uses: a state directory that is held, or one of its own. Throws
 * `DatabaseRefused` when the file is no sound database of ours; it is only read.
 */
export function draftFrom(backup: string, directory: string): Draft {
  checkBackup(backup);
  const path = `${databaseIn(directory)}.new`;
  const remove = (): void => {
    for (const left of [path, `${path}-wal`, `${path}-shm`]) rmSync(left, { force: true });
  };
  using drafting = new DisposableStack();
  drafting.defer(remove);
  remove();
  copyPrivately(backup, path);
  // A directory that was copied whole has what was written last in here.
  if (existsSync(`${backup}-wal`)) copyPrivately(`${backup}-wal`, `${path}-wal`);
  // Looked for in the copy: SQLite leaves files beside what it opens.
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
 * Puts a draft, which nothing has open any more, in the place of the directory's database. Gives where
 * what was there is kept; null when there was nothing.
 */
export function putInPlace({ path: draft }: Draft, directory: string): string | null {
  const path = databaseIn(directory);
  const kept = statSync(path, { throwIfNoEntry: false }) === undefined ? null : freeNameBeside(path);
  if (kept !== null) {
    checkpointFile(path);
    renameSync(path, kept);
    if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${kept}-wal`);
  }
  for (const left of [`${path}-wal`, `${path}-shm`]) rmSync(left, { force: true });
  renameSync(draft, path);
  syncDirectory(directory);
  return kept;
}

function copyPrivately(from: string, to: string): void {
  copyFileSync(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  chmodSync(to, 0o600);
}

/** The databases of a directory that were kept when a backup was put in their place. */
export function findReplaced(directory: string): readonly string[] {
  if (!existsSync(directory)) return [];
  const kept = new RegExp(String.raw`^${RegExp.escape(stateFiles.database)}\.replaced(-\d+)?$`);
  return readdirSync(directory)
    .filter((name) => kept.test(name))
    .map((name) => join(directory, name));
}

/** Changes that were answered may be in an earlier one alone, so none is ever overwritten. */
function freeNameBeside(path: string): string {
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? `${path}.replaced` : `${path}.replaced-${count}`;
    if (!existsSync(name)) return name;
  }
}

/** Closed again before the file is moved. */
function checkpointFile(path: string): void {
  using database = new DatabaseSync(path);
  checkpoint({ database });
}
