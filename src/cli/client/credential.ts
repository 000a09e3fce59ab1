import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatReason } from '../../config/fault.ts';
import { exitCode } from '../exit-code.ts';

/** The token that this command may send and the users who know it anyway, or why there is none and the exit code for it. */
export type TokenResult =
  | { readonly ok: true; readonly token: string; readonly knownTo: readonly number[] }
  | { readonly ok: false; readonly code: number; readonly lines: readonly string[] };

/** Reads the admin token that the daemon left in its state directory; `LATCHKEY_TOKEN` goes before it. */
export function readToken(stateDir: string): TokenResult {
  const given = process.env['LATCHKEY_TOKEN'] || undefined;
  const path = join(stateDir, 'admin.token');
  try {
    const { text, knownTo } = given === undefined ? readTokenFile(path) : { text: given, knownTo: [] };
    const token = text.trim();
    if (/^[!-~]+$/.test(token)) return { ok: true, token, knownTo };
    const source = given === undefined ? path : 'LATCHKEY_TOKEN';
    return { ok: false, code: exitCode.failed, lines: [`latchkey: there is no token in ${source}`] };
  } catch (error) {
    return explain(path, error);
  }
}

/**
 * Follows no link, so that another user's state directory cannot make this user (root) send the content of
 * a file of its choice, and does not wait for a pipe's writer.
 */
function readTokenFile(path: string): { readonly text: string; readonly knownTo: readonly number[] } {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    // Whoever owns the file can read it: a daemon under a user of its own is so trusted by root.
    return { text: readFileSync(file, 'utf8'), knownTo: [fstatSync(file).uid] };
  } finally {
    closeSync(file);
  }
}

function explain(path: string, error: unknown): TokenResult {
  const first = `latchkey: cannot read the admin token ${path}: ${formatReason(error)}`;
  const isAbsent = error instanceof Error && 'code' in error && error.code === 'ENOENT';
  return isAbsent
    ? {
        ok: false,
        code: exitCode.unreachable,
        lines: [first, 'No daemon was started on this state directory. Start one: latchkey serve'],
      }
    : {
        ok: false,
        code: exitCode.failed,
        lines: [first, 'Run this as the user whose daemon it is, or give a token in LATCHKEY_TOKEN.'],
      };
}
