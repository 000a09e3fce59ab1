import { lstatSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { formatReason } from '../errors.ts';

/** The state of a file in the working directory that was not named; `unsafe`: why the file must not be used. */
export type LocalFile = 'absent' | 'safe' | { readonly unsafe: string };

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
export function checkLocalFile(path: string, user: number | null): LocalFile {
  const named = lstatOrNull(path);
  if (named === null) return 'absent';
  if (user === null) return 'safe';
  try {
    const unsafe =
      unsafeStats(statSync(dirname(path)), 'its directory', user) ??
      (named.isSymbolicLink() ? unsafeOwner(named, 'the link', user) : null) ??
      unsafeFile(statSync(path), user);
    return unsafe === null ? 'safe' : { unsafe };
  } catch (error) {
    return { unsafe: formatReason(error) };
  }
}

/** Also null if this user may not read the directory. */
function lstatOrNull(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

function unsafeFile(stats: Stats, user: number): string | null {
  return stats.isFile() ? unsafeStats(stats, 'it', user) : 'it is not a regular file';
}

function unsafeStats(stats: Stats, name: string, user: number): string | null {
  if (isWritableByOthers(stats)) return `other users can write to ${name}`;
  return unsafeOwner(stats, name, user);
}

function unsafeOwner({ uid }: Stats, name: string, user: number): string | null {
  return uid === user || uid === root ? null : `${name} belongs to user ${uid}, and this is user ${user}`;
}

/** A group with the number of its user belongs to that user alone; where such groups exist, new files are writable by them. */
function isWritableByOthers({ mode, uid, gid }: Stats): boolean {
  return (mode & writableByAll) !== 0 || ((mode & writableByGroup) !== 0 && gid !== uid);
}
