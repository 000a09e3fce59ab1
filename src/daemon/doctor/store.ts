import { formatReason } from '../../config/errors.ts';
import { fail, ok, warn, type Finding } from '../../config/finding.ts';
import type { RoleName } from '../../domain/role.ts';
import { counted } from '../../domain/text.ts';
import { DatabaseRefused, sqliteCode } from '../../store/sqlite/faults.ts';
import { type Contents, readContents } from '../../store/sqlite/files/contents.ts';
import { findDamage } from '../../store/sqlite/files/backup.ts';
import { findDatabase } from '../../store/sqlite/files/database-file.ts';
import { findNewerSchema } from '../../store/sqlite/files/migrations.ts';
import { databaseIn } from '../../store/sqlite/files/state-directory.ts';
import { asItsUser } from './files.ts';

/** The records of a state directory that may exist nowhere else, or why they cannot be read. */
export type ContentsResult =
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

/** Examines a store that no daemon uses. Changes nothing. */
export function examineStore(
  stateDir: string,
  { hint, start }: { hint: (words: string) => string; start: string },
): Finding[] {
  const advice = `restore a backup: ${hint('restore FILE')}`;
  const path = databaseIn(stateDir);
  try {
    if (!findDatabase(path)) return [];
    const found = examineDatabase(path, advice);
    return found.level === 'ok' ? [found, ...examineOutbox(stateDir, start)] : [found];
  } catch (error) {
    if (error instanceof DatabaseRefused) return [fail(error.message, advice)];
    const unread = `the store ${path} cannot be examined`;
    if (error instanceof Error && sqliteCode(error) !== null) {
      return [
        fail(`${unread}: ${error.message}`, `check that its disk works and has free space, or ${asItsUser}`),
      ];
    }
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    return [fail(`${unread}: ${formatReason(error)}`, asItsUser)];
  }
}

/** Examines whether the store has the configured role: a start refuses the other role. */
export function examineRole(stateDir: string, configured: RoleName): Finding[] {
  const examined = examineContents(stateDir);
  if (!examined.ok) return [];
  const { role, records } = examined.contents;
  const { products, collections, coupons, accounts } = records;
  if (role === 'agent' && configured === 'authority') {
    const what = `the store in ${stateDir} is an agent's, but the configuration has no upstream`;
    return [fail(what, 'put the upstream back, or choose another state_dir for an authority')];
  }
  if (role === 'authority' && configured === 'agent' && products + collections + coupons + accounts > 0) {
    const what = `the store in ${stateDir} is an authority's, but the configuration has an upstream`;
    return [fail(what, 'remove the upstream, or choose another state_dir for an agent')];
  }
  return [];
}

function examineDatabase(path: string, advice: string): Finding {
  const damage = findDamage(path);
  if (damage !== null) return fail(`the store ${path} is damaged: ${damage}`, advice);
  const newer = findNewerSchema(path);
  return newer === null
    ? ok(`the store ${path} is sound`)
    : fail(`the store ${path} cannot be used: ${newer}`, 'start it with the newer Latchkey');
}

function examineOutbox(stateDir: string, start: string): Finding[] {
  const { unfinished } = readContents(stateDir, Date.now());
  const count = Object.values(unfinished).reduce((sum, each) => sum + each, 0);
  return count === 0
    ? []
    : [warn(`${counted(count, 'change')} in it did not reach the upstream yet`, `start it: ${start}`)];
}
