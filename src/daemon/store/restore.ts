import { type RoleName, roleWithArticle } from '../../domain/role.ts';
import { isFailure } from '../../domain/problem/problem.ts';
import { storedTime } from '../../service/lifecycle/time-mark.ts';
import { StorageError } from '../../service/ports.ts';
import { roleOf, type RestoredStore } from '../../service/lifecycle/start.ts';
import { runUseCase } from '../../service/run.ts';
import { openReading, openWriting } from '../../store/sqlite/connection.ts';
import {
  DatabaseRefused,
  StateDirectoryHeld,
  StateDirectoryRefused,
  StateDirectoryUnusable,
} from '../../store/sqlite/faults.ts';
import { localWriter } from '../../store/sqlite/commit.ts';
import { claimDirectory } from '../../store/sqlite/files/open.ts';
import { PersistentClock } from '../system/clock.ts';
import { secureStateDirectory } from './windows-directory.ts';
import { databaseIn } from '../../store/sqlite/files/state-directory.ts';
import { countMissing, type UnsentCounts } from '../../store/sqlite/files/contents.ts';
import { findDatabase } from '../../store/sqlite/files/database-file.ts';
import { checkBackup, draftFrom, putInPlace } from '../../store/sqlite/files/backup.ts';
import { sha256, systemRandom } from '../system/machine.ts';

/** What a restored store has replaced. */
type Replaced = {
  /** Where the files of the previous database are now; empty: there was none. */
  kept: readonly string[];
  /** What only the previous database can send; null: it cannot be read. */
  unsent: UnsentCounts | null;
};

/** The restored store and what it has replaced, or why nothing was restored. */
export type Restoring =
  ({ ok: true; role: RoleName | null } & Replaced & RestoredStore) | { ok: false; reason: string };

/**
 * Restores a backup into a state directory that no process uses, as a new instance that reads back all unfinished
 * operations. The backup becomes a new instance before it is moved into its place: a crash in between leaves no copy
 * with the identity of the original. `confirm` is asked if something would never be sent; nothing is restored if it throws.
 */
export async function restoreBackup(
  backup: string,
  stateDir: string,
  confirm: (unsent: UnsentCounts) => Promise<void>,
): Promise<Restoring> {
  try {
    // Before a state directory is created.
    checkBackup(backup);
    // The next start warns if the access rights are not known.
    secureStateDirectory(stateDir, () => undefined);
    using _ = claimDirectory(stateDir);
    using draft = draftFrom(backup, stateDir);
    const role = storedRole(draft.path);
    refuseOtherRole(backup, role, stateDir);
    const unsent = findUnsent(stateDir, draft.path);
    if (unsent !== null && isLoss(unsent)) await confirm(unsent);
    const restored = await makeOwn(draft.path);
    return { ok: true, role, unsent, kept: putInPlace(draft, stateDir), ...restored };
  } catch (error) {
    if (!isStoreRefusal(error)) throw error;
    return { ok: false, reason: error.message };
  }
}

function refuseOtherRole(backup: string, role: RoleName | null, stateDir: string): void {
  const present = storedRole(databaseIn(stateDir));
  if (role === null || present === null || role === present) return;
  throw new DatabaseRefused(
    backup,
    `it is ${roleWithArticle[role]}'s, and the state directory ${stateDir} is ${roleWithArticle[present]}'s: restore it into another ` +
      'directory (--state-dir), or move the files of that one away first.',
  );
}

function isLoss({ operations, uses }: UnsentCounts): boolean {
  return uses > 0 || Object.values(operations).some((count) => count > 0);
}

/** What only the present database can send; null if it cannot be read, which is a reason to restore a backup. */
function findUnsent(stateDir: string, draft: string): UnsentCounts | null {
  const path = databaseIn(stateDir);
  try {
    return countMissing(findDatabase(path) ? path : draft, draft);
  } catch {
    return null;
  }
}

/** Null if there is no readable store: a damaged store is a reason to restore a backup. */
function storedRole(databasePath: string): RoleName | null {
  try {
    // SQLite would remove the log of an empty file.
    if (!findDatabase(databasePath)) return null;
    using connection = openReading(databasePath);
    return roleOf(connection.reader);
  } catch {
    return null;
  }
}

/** Makes the database of a backup a new instance. */
export async function makeOwn(path: string): Promise<RestoredStore> {
  using connection = openWriting(path);
  const clock = new PersistentClock(await storedTime(connection.transaction));
  const writer = localWriter(connection, {
    run: runUseCase,
    isFailure,
    context: () => ({
      now: clock.now(),
      monotonic: clock.monotonic(),
      random: systemRandom,
      digest: sha256,
      recordsHistory: true,
    }),
  });
  const restored = await writer.write('restore', {}, { actor: `user:${process.getuid?.() ?? 'local'}` });
  if (!restored.ok) throw new Error(restored.problem.detail);
  return restored.value;
}

/** Whether an error says why a store cannot be used or read. */
export function isStoreRefusal(error: unknown): error is Error {
  return (
    error instanceof DatabaseRefused ||
    error instanceof StateDirectoryHeld ||
    error instanceof StateDirectoryRefused ||
    error instanceof StateDirectoryUnusable ||
    error instanceof StorageError ||
    // An error of the system, whose message names the file or directory.
    (error instanceof Error && 'syscall' in error)
  );
}
