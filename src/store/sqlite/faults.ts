import type { StorageFault } from '../../service/ports.ts';

/** Another process uses the state directory. */
export class StateDirectoryHeld extends Error {
  readonly code = 'state_directory_held';
  constructor(directory: string, cause: unknown) {
    super(
      `Another process is using the state directory ${directory}: stop it, or choose another directory.`,
      {
        cause,
      },
    );
    this.name = 'StateDirectoryHeld';
  }
}

/** The state directory cannot be created, read or written. */
export class StateDirectoryUnusable extends Error {
  readonly code = 'state_directory_unusable';
  readonly directory: string;
  constructor(directory: string, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`The state directory ${directory} cannot be used: ${reason}`, { cause });
    this.name = 'StateDirectoryUnusable';
    this.directory = directory;
  }
}

/** The state directory is not safe for this process or belongs to another. It was not changed. */
export class StateDirectoryRefused extends Error {
  readonly code = 'state_directory_refused';
  constructor(directory: string, reason: string) {
    super(`The state directory ${directory} is refused: ${reason}`);
    this.name = 'StateDirectoryRefused';
  }
}

/** The file at the path of the database is not a database that this version can use. It was not changed. */
export class DatabaseRefused extends Error {
  readonly code = 'database_refused';
  constructor(path: string, reason: string, cause?: unknown) {
    super(`The database ${path} is refused: ${reason}`, { cause });
    this.name = 'DatabaseRefused';
  }
}

/** Why a database of a preview is refused. */
export const previewReason =
  'it was written by a preview; this version cannot read it. Nothing was changed: move it away to start with an empty store, or go on with the preview.';

export const restoreAdvice = 'restore a backup: latchkey restore FILE';

/** SQLite's primary result code (https://sqlite.org/rescode.html); null for other errors. */
export function sqliteCode(error: unknown): number | null {
  const isSqlite = error instanceof Error && 'errcode' in error && typeof error.errcode === 'number';
  return isSqlite ? Number(error.errcode) & 0xff : null;
}

const corrupt = 11;
const notADatabase = 26;

/** Whether SQLite reports a damaged file, not just a failed read. */
export function isCorruption(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === corrupt || code === notADatabase;
}

const busy = 5;
const locked = 6;
const full = 13;
/** Permission, memory, read-only, I/O, corruption, opening, locking protocol, large files, no database. */
const broken: ReadonlySet<number> = new Set([3, 7, 8, 10, 11, 14, 15, 22, 26]);

/** I/O, a full disk, opening. */
const possiblyOutOfSpace: ReadonlySet<number> = new Set([10, full, 14]);

/** Whether SQLite may have run out of space. It reports an exceeded quota as an I/O error. */
export function mayBeOutOfSpace(error: unknown): boolean {
  return possiblyOutOfSpace.has(sqliteCode(error) ?? 0);
}

/** `busy` is harmless and passes; null: the error is not a fault of the storage. */
export function storageFault(error: unknown): StorageFault | 'busy' | null {
  const code = sqliteCode(error);
  if (code === null) return null;
  if (code === full) return 'full';
  if (code === busy || code === locked) return 'busy';
  return broken.has(code) ? 'failed' : null;
}
