import { lstatSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { formatReason } from '../errors.ts';

/** The state of a file in the working directory that was not named; `distrust`: why the file must not be used. */
export type LocalFile = 'absent' | 'safe' | { readonly distrust: string };

const root = 0;
const writableByGroup = 0o020;
const writableByAll = 0o002;

/**
 * Whether only this user or root can have put a file here.
 *
 * In a directory like /tmp, another user could leave a file that leads commands to a daemon of that user. A user who
 * can write to the directory can replace the file, and files that it names by a relative path. `user`: the number of
 * this user; null on Windows, which has no such numbers.
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

/** Also null if this user may not read the directory. */
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

/** A group with the number of its user belongs to that user alone; where such groups exist, new files are writable by them. */
function isWritableByOthers({ mode, uid, gid }: Stats): boolean {
  return (mode & writableByAll) !== 0 || ((mode & writableByGroup) !== 0 && gid !== uid);
}
