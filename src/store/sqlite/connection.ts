import { DatabaseSync } from 'node:sqlite';
import { dirname } from 'node:path';
import type { RoleName } from '../../domain/role.ts';
import type { Reader, Transaction } from '../../service/tables.ts';
import { StateDirectoryUnusable } from './faults.ts';
import { prepareReader, prepareTransaction } from './tables.ts';

/** The one connection that writes. */
export interface WritingConnection extends Disposable {
  readonly database: DatabaseSync;
  readonly transaction: Transaction;
}

/** A connection for short reads. */
export interface ReadingConnection extends Disposable {
  readonly database: DatabaseSync;
  readonly reader: Reader;
}

/* Waiting for a lock blocks the thread. Only another program that has opened the file could hold one. */
const writingTimeoutMs = 1000;
const readingTimeoutMs = 100;

/** For every connection: a damaged or doctored file must not lead us to run or believe what it says. */
const guards = `
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA foreign_keys = ON;
`;

/** The size to which the write-ahead log is truncated after a checkpoint. */
const keptLogBytes = 64 * 1024 * 1024;

/**
 * Room for the pages that a large command changes; those without room are written to the log more than once. SQLite
 * takes a multiple of 256 for 0, which is no limit.
 */
const changedPages = 4000;

/** Room for pages from one command to the next: imports read again what they wrote; an agent changes rows here and there. */
const keptPagesKib: Readonly<Record<RoleName, number>> = { authority: 16 * 1024, agent: 2 * 1024 };

/**
 * After so many pages the log is brought into the database: 16 MiB. Commits that change the same pages again, as those
 * of an import do, then write them there once. SQLite's own 1000 are less than one such commit.
 */
const loggedPages = 4000;

/** Opens the connection that writes; the state directory must be locked, and no other connection may write. */
export function openWriting(databasePath: string, role: RoleName = 'authority'): WritingConnection {
  const database = new DatabaseSync(databasePath, { timeout: writingTimeoutMs });
  using opening = new DisposableStack();
  opening.use(database);
  database.exec(guards);
  const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode'];
  if (mode !== 'wal') throw new StateDirectoryUnusable(databasePath, 'its file system cannot hold a WAL');
  database.exec(`
    PRAGMA synchronous = FULL;
    PRAGMA journal_size_limit = ${keptLogBytes};
    PRAGMA wal_autocheckpoint = ${loggedPages};
    PRAGMA cache_size = -${keptPagesKib[role]};
    PRAGMA cache_spill = ${changedPages};
  `);
  keepTemporaryFilesBeside(database);
  const transaction = prepareTransaction(database);
  const open = opening.move();
  return { database, transaction, [Symbol.dispose]: () => open.dispose() };
}

/** Brings the write-ahead log into the database, where it can, so that one file is all of it. */
export function checkpoint({ database }: Pick<WritingConnection, 'database'>): void {
  try {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } catch {
    // On a full disk, or of a damaged database, the log stays, and belongs to the database as before.
  }
}

/** Opens a connection that cannot write. */
export function openReading(databasePath: string): ReadingConnection {
  const database = new DatabaseSync(databasePath, { readOnly: true, timeout: readingTimeoutMs });
  using opening = new DisposableStack();
  opening.use(database);
  database.exec(`${guards} PRAGMA temp_store = MEMORY`);
  const reader = prepareReader(database);
  const open = opening.move();
  return { database, reader, [Symbol.dispose]: () => open.dispose() };
}

/**
 * Lets what SQLite must be able to undo, or has to sort, go into a file in the directory of the database as soon as it
 * is more than 64 KiB: in memory, each statement walks through all that there is, and /tmp may be full or not to be
 * written when the state directory is neither. The pragma is deprecated, but the only way that a thread of Node has.
 */
export function keepTemporaryFilesBeside(database: DatabaseSync): void {
  const path = database.location();
  if (path === null) return;
  const directory = dirname(path).replaceAll("'", "''");
  database.exec(`PRAGMA temp_store = FILE; PRAGMA temp_store_directory = '${directory}'`);
}

/** How long another program is waited for that has locked the file, in ms. */
const lockWaitMs = 1_000;

/** Opens a database for a look at it, also beside a process that writes to it. */
export function openReadOnly(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: lockWaitMs });
}
