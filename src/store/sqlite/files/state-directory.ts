import {
  lstatSync,
  readdirSync,
  statSync,
  type Stats,
  accessSync,
  closeSync,
  constants,
  openSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StateDirectoryHeld, storageFault } from '../faults.ts';

/** The files of a state directory. The socket lies there too, unless it is configured elsewhere. */
export const stateFiles = {
  database: 'latchkey.db',
  lock: 'latchkey.lock',
  reserve: 'latchkey.reserve',
  backup: 'backup.new',
  adminToken: 'admin.token',
  apiKey: 'api.key',
  /** The key of this device, at a holder. */
  deviceKey: 'device.jwk',
  addresses: 'listen.json',
} as const;

export function databaseIn(directory: string): string {
  return join(directory, stateFiles.database);
}

const root = 0;
const writableByOthers = 0o022;

/**
 * Why a state directory is not safe to use: another user owns it or can write to it, or one of our files in it is a
 * link, not a regular file, or belongs to another user. `user`: the id of the user of this process; null on systems
 * without user ids.
 */
export function findSafetyProblem(directory: string, user: number | null): string | null {
  const link = lstatSync(directory);
  if (link.isSymbolicLink() && isForeign(link, user)) {
    return `it is a link of user ${link.uid}, who can change where it leads: choose another directory.`;
  }
  const status = statSync(directory);
  if (isForeign(status, user)) {
    return `it belongs to user ${status.uid}, and this is user ${user}: run this as that user (sudo -u '#${status.uid}'), or choose another directory.`;
  }
  if (isWritable(status, user))
    return `other users can write to it: chmod go-w ${directory}, or choose a new directory inside it.`;
  for (const name of readdirSync(directory).filter(isOurs)) {
    const problem = findFileProblem(directory, name, user);
    if (problem !== null) return problem;
  }
  return null;
}

function findFileProblem(directory: string, name: string, user: number | null): string | null {
  const path = join(directory, name);
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined) return null;
  if (status.isSymbolicLink()) return `${name} in it is a link: put the file itself there, or remove it.`;
  // Opening a pipe would block the start for ever. Docker mounts a directory where a file is missing.
  if (Object.values<string>(stateFiles).includes(name) && !status.isFile()) {
    return `${name} in it is not a regular file: move it elsewhere.`;
  }
  if (isForeign(status, user)) {
    return `${name} in it belongs to user ${status.uid}: remove it, or change its owner.`;
  }
  return isWritable(status, user) ? `other users can write ${name} in it: chmod 0600 ${path}` : null;
}

/** Includes names with a suffix, such as `latchkey.db-wal` and `admin.token.new`. */
function isOurs(file: string): boolean {
  return Object.values(stateFiles).some((name) => file.startsWith(name));
}

function isForeign({ uid }: Stats, user: number | null): boolean {
  return user !== null && uid !== user && uid !== root;
}

function isWritable({ mode }: Stats, user: number | null): boolean {
  return user !== null && (mode & writableByOthers) !== 0;
}

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
