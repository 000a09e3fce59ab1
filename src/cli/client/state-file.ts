import { closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { formatReason } from '../../config/errors.ts';
import { exitCode } from '../exit-code.ts';

/** The text of a file and the user id of its owner, or why it cannot be read. `isAbsent`: it does not exist. */
export type StateFile =
  | { readonly ok: true; readonly path: string; readonly text: string; readonly owner: number }
  | { readonly ok: false; readonly isAbsent: boolean; readonly lines: readonly string[] };

const maxBytes = 64 * 1024;
/** Fails for a symbolic link, and does not wait for the writer of a pipe. */
const openFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Reads a file that the daemon wrote into its state directory.
 *
 * The file must be a regular file of this user or of root. Root also reads a file of the directory's owner. Otherwise
 * another user could make root send the content of any file as a token.
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
    if (stats.size > maxBytes) return refuse(path, `it is larger than ${maxBytes} bytes`);
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
  const advice = code === 'EACCES' ? ['Run this as the user that runs the daemon, or as root.'] : [];
  return refuse(path, formatReason(error), advice);
}

function refuse(path: string, reason: string, advice: readonly string[] = []): StateFile & { ok: false } {
  return { ok: false, isAbsent: false, lines: [`latchkey: cannot read ${path}: ${reason}`, ...advice] };
}

/** The token to send and the other users who can read it, or why there is none. */
export type TokenResult =
  | { readonly ok: true; readonly token: string; readonly knownTo: readonly number[] }
  | { readonly ok: false; readonly code: number; readonly lines: readonly string[] };

/** The token to send: `LATCHKEY_TOKEN`, or else the admin token in the state directory. */
export function readToken(stateDir: string): TokenResult {
  const given = process.env['LATCHKEY_TOKEN'] || undefined;
  if (given !== undefined) return checkToken(given, 'LATCHKEY_TOKEN', []);
  const file = readStateFile(stateDir, 'admin.token');
  if (!file.ok) return { ok: false, code: exitCode.failed, lines: file.lines };
  // The owner of the file can read the token anyway, so root may send it to a daemon that runs as that user.
  return checkToken(file.text, file.path, [file.owner]);
}

function checkToken(text: string, source: string, knownTo: readonly number[]): TokenResult {
  const token = text.trim();
  return /^[!-~]+$/.test(token)
    ? { ok: true, token, knownTo }
    : { ok: false, code: exitCode.failed, lines: [`latchkey: there is no token in ${source}`] };
}
