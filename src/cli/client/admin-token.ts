import { exitCode } from '../exit-code.ts';
import { readStateFile } from './state-file.ts';

/** The token that this command may send and the users who know it anyway, or why there is none and the exit code for it. */
export type TokenResult =
  | { readonly ok: true; readonly token: string; readonly knownTo: readonly number[] }
  | { readonly ok: false; readonly code: number; readonly lines: readonly string[] };

/** Reads the admin token that the daemon left in its state directory; `LATCHKEY_TOKEN` goes before it. */
export function readToken(stateDir: string): TokenResult {
  const given = process.env['LATCHKEY_TOKEN'] || undefined;
  if (given !== undefined) return checkToken(given, 'LATCHKEY_TOKEN', []);
  const file = readStateFile(stateDir, 'admin.token');
  if (!file.ok) return { ok: false, code: exitCode.failed, lines: file.lines };
  // Whoever owns the file can read it: a daemon under a user of its own is so trusted by root.
  return checkToken(file.text, file.path, [file.owner]);
}

function checkToken(text: string, source: string, knownTo: readonly number[]): TokenResult {
  const token = text.trim();
  return /^[!-~]+$/.test(token)
    ? { ok: true, token, knownTo }
    : { ok: false, code: exitCode.failed, lines: [`latchkey: there is no token in ${source}`] };
}
