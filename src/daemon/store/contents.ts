import { DatabaseRefused, sqliteCode } from '../../store/sqlite/faults.ts';
import { type Contents, readContents } from '../../store/sqlite/files/contents.ts';

/** The records of a state directory that may exist nowhere else, or why they cannot be read. */
type ContentsResult =
  { readonly ok: true; readonly contents: Contents } | { readonly ok: false; readonly reason: string };

/** Reads the records of a state directory, also while a daemon uses it. Changes nothing. */
export function examineContents(stateDir: string): ContentsResult {
  try {
    return { ok: true, contents: readContents(stateDir, Date.now()) };
  } catch (error) {
    const isExpected =
      error instanceof DatabaseRefused ||
      sqliteCode(error) !== null ||
      (error instanceof Error && 'syscall' in error);
    if (!isExpected || !(error instanceof Error)) throw error;
    return { ok: false, reason: error.message };
  }
}
