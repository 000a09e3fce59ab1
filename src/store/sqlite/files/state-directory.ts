import { lstatSync, readdirSync, statSync, type Stats } from 'node:fs';
import { join } from 'node:path';

/** The files of a state directory. The socket lies there too, unless it is configured elsewhere. */
export const stateFiles = {
  database: 'latchkey.db',
  lock: 'latchkey.lock',
  reserve: 'latchkey.reserve',
  backup: 'backup.new',
  adminToken: 'admin.token',
  apiKey: 'api.key',
  addresses: 'listen.json',
} as const;

/** Where a state directory keeps its database. */
export function databaseIn(directory: string): string {
  return join(directory, stateFiles.database);
}

const root = 0;
const writableByOthers = 0o022;

/**
 * Why a state directory is not safe to use: another user owns it or can write to it, or a file of ours in it
 * is a link, no regular file, or another user's. `user`: the number of the user that is to use it; null on systems
 * without.
 */
export function findIntrusion(directory: string, user: number | null): string | null {
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
    const found = findIntruder(directory, name, user);
    if (found !== null) return found;
  }
  return null;
}

function findIntruder(directory: string, name: string, user: number | null): string | null {
  const path = join(directory, name);
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined) return null;
  if (status.isSymbolicLink()) return `${name} in it is a link: put the file itself there, or remove it.`;
  // A pipe, opened, would hold up the start for ever; where a file is missing, Docker mounts a directory.
  if (Object.values<string>(stateFiles).includes(name) && !status.isFile()) {
    return `${name} in it is no regular file: move it elsewhere.`;
  }
  if (isForeign(status, user)) {
    return `${name} in it belongs to user ${status.uid}: remove it, or make it your own.`;
  }
  return isWritable(status, user) ? `other users can write ${name} in it: chmod 0600 ${path}` : null;
}

/** Also what SQLite and drafts add to a name: `latchkey.db-wal`, `admin.token.new`. */
function isOurs(file: string): boolean {
  return Object.values(stateFiles).some((name) => file.startsWith(name));
}

function isForeign({ uid }: Stats, user: number | null): boolean {
  return user !== null && uid !== user && uid !== root;
}

function isWritable({ mode }: Stats, user: number | null): boolean {
  return user !== null && (mode & writableByOthers) !== 0;
}
