import { exitCode } from '../exit-code.ts';
import { readStateFile } from './state-file.ts';

/** A token and the users who can read its file anyway, or why there is none and the exit code for it. */
export type TokenResult =
  | { readonly ok: true; readonly token: string; readonly knownTo: readonly number[] }
  | { readonly ok: false; readonly code: number; readonly lines: readonly string[] };

/** The token to send: `LATCHKEY_TOKEN` if it is set, else the admin token in the state directory. */
export function readToken(stateDir: string): TokenResult {
  const given = process.env['LATCHKEY_TOKEN'] || undefined;
  if (given !== undefined) return checkToken(given, 'LATCHKEY_TOKEN', []);
  const file = readStateFile(stateDir, 'admin.token');
  if (!file.ok) return { ok: false, code: exitCode.failed, lines: file.lines };
  // The owner of the file can read it anyway, so root may send it to a daemon that runs as that user.
  return checkToken(file.text, file.path, [file.owner]);
}

function checkToken(text: string, source: string, knownTo: readonly number[]): TokenResult {
  const token = text.trim();
  return /^[!-~]+$/.test(token)
    ? { ok: true, token, knownTo }
    : { ok: false, code: exitCode.failed, lines: [`latchkey: there is no token in ${source}`] };
}
