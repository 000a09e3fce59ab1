import { closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { formatReason } from '../../config/fault.ts';

/** A file that the daemon keeps in its state directory, with the number of the user who owns it, or why it cannot be read. */
export type StateFile =
  | { readonly ok: true; readonly path: string; readonly text: string; readonly owner: number }
  | { readonly ok: false; readonly isAbsent: boolean; readonly lines: readonly string[] };

const maximumBytes = 64 * 1024;
/** A link is not followed, and a pipe without a writer does not block. */
const openFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Reads a file of the state directory.
 *
 * It must be the daemon's own: a regular file of this user or of root; root also takes that of the
 * directory's owner.
 */
export function readStateFile(stateDir: string, name: 'admin.token' | 'listen.json'): StateFile {
  const path = join(stateDir, name);
  let file: number;
  try {
    file = openSync(path, openFlags);
  } catch (error) {
    return explain(path, error);
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) return refuse(path, 'it is not a regular file');
    if (stats.size > maximumBytes) return refuse(path, `it is larger than ${maximumBytes} bytes`);
    if (!trustedOwners(path).includes(stats.uid)) {
      return refuse(path, `it belongs to user ${stats.uid}, who is neither this user nor root`);
    }
    return { ok: true, path, text: readFileSync(file, 'utf8'), owner: stats.uid };
  } catch (error) {
    return explain(path, error);
  } finally {
    closeSync(file);
  }
}

function trustedOwners(path: string): readonly number[] {
  const user = process.getuid?.() ?? 0;
  return user === 0 ? [0, statSync(dirname(path)).uid] : [0, user];
}

function explain(path: string, error: unknown): StateFile {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT') return { ...refuse(path, formatReason(error)), isAbsent: true };
  if (code === 'ELOOP') return refuse(path, 'it is a link');
  const advice = code === 'EACCES' ? ['Run this as the user whose daemon it is, or as root.'] : [];
  return refuse(path, formatReason(error), advice);
}

function refuse(path: string, reason: string, advice: readonly string[] = []): StateFile & { ok: false } {
  return { ok: false, isAbsent: false, lines: [`latchkey: cannot read ${path}: ${reason}`, ...advice] };
}
