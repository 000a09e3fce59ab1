import { lstatSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { formatReason } from '../fault/fault.ts';

/** What lies in the working directory under a name that nobody gave; `distrust`: why it must not be taken. */
export type LocalFile = 'absent' | 'safe' | { readonly distrust: string };

const root = 0;
const writableByGroup = 0o020;
const writableByAll = 0o002;

/**
 * Whether a file that just lies here can only be of this user or of root.
 *
 * In a place like /tmp anybody can leave a file that leads the commands of others to a daemon of his own; and who
 * can write to the directory can put another file there, or what the file names by a relative path. `user`: the
 * number of this user; null on Windows, which has no such numbers.
 */
export function judgeLocalFile(path: string, user: number | null): LocalFile {
  const named = lookAt(path);
  if (named === null) return 'absent';
  if (user === null) return 'safe';
  try {
    const distrust =
      distrustStats(statSync(dirname(path)), 'its directory', user) ??
      (named.isSymbolicLink() ? distrustOwner(named, 'the link', user) : null) ??
      distrustFile(statSync(path), user);
    return distrust === null ? 'safe' : { distrust };
  } catch (error) {
    return { distrust: formatReason(error) };
  }
}

/** Null also where this user may not look: nobody put a file there for this user. */
function lookAt(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

function distrustFile(stats: Stats, user: number): string | null {
  return stats.isFile() ? distrustStats(stats, 'it', user) : 'it is not a regular file';
}

function distrustStats(stats: Stats, name: string, user: number): string | null {
  if (isWritableByOthers(stats)) return `other users can write to ${name}`;
  return distrustOwner(stats, name, user);
}

function distrustOwner({ uid }: Stats, name: string, user: number): string | null {
  return uid === user || uid === root ? null : `${name} belongs to user ${uid}, and this is user ${user}`;
}

/** A group with its user's number is of that user alone: where users have such, all they make is writable by it. */
function isWritableByOthers({ mode, uid, gid }: Stats): boolean {
  return (mode & writableByAll) !== 0 || ((mode & writableByGroup) !== 0 && gid !== uid);
}
