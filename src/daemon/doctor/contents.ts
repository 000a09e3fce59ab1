import { DatabaseRefused, sqliteCode } from '../../store/sqlite/faults.ts';
import { type Contents, readContents } from '../../store/sqlite/files/contents.ts';

/** What a state directory holds that may be nowhere else, or why that cannot be told. */
export type ContentsResult =
  { readonly ok: true; readonly contents: Contents } | { readonly ok: false; readonly reason: string };

/** Looks into a state directory, whether or not a daemon runs on it, and changes nothing. */
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
