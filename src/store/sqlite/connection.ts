import { DatabaseSync } from 'node:sqlite';
import { dirname } from 'node:path';
import type { RoleName } from '../../domain/role.ts';
import type { Reader, Transaction, Attempt } from '../../service/tables.ts';
import { storeTemporaryFilesNextTo, syncFully } from './database.ts';
import { StateDirectoryUnusable } from './faults.ts';
import { collectChanges, collectEvents, collectTrace, trackChanges } from '../changes.ts';
import { localReads, localTables, sharedReads, sharedTables } from '../tables.ts';
import { sqlOn, type SqliteSql } from './statements.ts';
import * as attempt from './tables/activation-attempt.ts';
import * as license from './tables/license.ts';
import * as mirror from './tables/mirrored-coupon.ts';
import * as snapshot from './tables/license-snapshot.ts';
import * as operation from './tables/operation.ts';
import * as follow from './tables/follow.ts';
import * as preload from './tables/preload.ts';
import * as purchase from './tables/purchase.ts';

/** The only connection that writes. */
export interface WritingConnection extends Disposable {
  readonly database: DatabaseSync;
  readonly transaction: Transaction;
}

/** A connection for short reads. */
export interface ReadingConnection extends Disposable {
  readonly database: DatabaseSync;
  readonly reader: Reader;
}

/* Waiting for a lock blocks the thread. Only another program that has opened the file could hold a lock. */
const writingTimeoutMs = 1000;
const readingTimeoutMs = 100;

/** For every connection: protection against a damaged or malicious file. */
const safetyPragmas = `
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA foreign_keys = ON;
`;

/** The size to which the write-ahead log is truncated after a checkpoint. */
const maxLogBytes = 64 * 1024 * 1024;

/**
 * The number of changed pages in memory. SQLite may write pages beyond this number to the log more than once. SQLite
 * takes a multiple of 256 for 0, which means no limit.
 */
const maxDirtyPages = 4000;

/** An authority needs a larger page cache, because imports read again the pages that they have written. */
const cacheKib: Readonly<Record<RoleName, number>> = {
  authority: 16 * 1024,
  agent: 2 * 1024,
  holder: 2 * 1024,
};

/**
 * Checkpoint after 16 MiB of log. Several commits of an import change the same pages, and a checkpoint writes each page
 * once. SQLite's default of 1000 pages is less than one such commit.
 */
const checkpointPages = 4000;

/** The state directory must be locked, and no other connection may write. */
export function openWriting(
  databasePath: string,
  role: RoleName = 'authority',
  platform: NodeJS.Platform = process.platform,
): WritingConnection {
  const database = new DatabaseSync(databasePath, { timeout: writingTimeoutMs });
  using opening = new DisposableStack();
  opening.use(database);
  database.exec(safetyPragmas);
  const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode'];
  if (mode !== 'wal')
    throw new StateDirectoryUnusable(
      dirname(databasePath),
      "its file system does not support SQLite's WAL mode",
    );
  syncFully(database, platform);
  database.exec(`
    PRAGMA journal_size_limit = ${maxLogBytes};
    PRAGMA wal_autocheckpoint = ${checkpointPages};
    PRAGMA cache_size = -${cacheKib[role]};
    PRAGMA cache_spill = ${maxDirtyPages};
  `);
  storeTemporaryFilesNextTo(database);
  const transaction = prepareTransaction(database);
  const open = opening.move();
  return { database, transaction, [Symbol.dispose]: () => open.dispose() };
}

/** Moves the write-ahead log into the database file, if possible, so that this file is complete. */
export function checkpoint({ database }: Pick<WritingConnection, 'database'>): void {
  try {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } catch {
    // If the disk is full or the database is damaged, the log stays beside the database.
  }
}

/** Opens a connection that cannot write. */
export function openReading(databasePath: string): ReadingConnection {
  const database = new DatabaseSync(databasePath, { readOnly: true, timeout: readingTimeoutMs });
  using opening = new DisposableStack();
  opening.use(database);
  database.exec(`${safetyPragmas} PRAGMA temp_store = MEMORY`);
  const reader = prepareReader(database);
  const open = opening.move();
  return { database, reader, [Symbol.dispose]: () => open.dispose() };
}

export function prepareReader(database: DatabaseSync): Reader {
  const sql = sqlOn(database);
  return {
    ...sharedReads(sql),
    ...localReads(sql),
    purchases: purchase.purchaseReads(sql),
    licenses: license.licenseReads(sql),
    history: license.historyReads(sql),
    mirror: mirror.mirrorReads(sql),
    snapshots: snapshot.snapshotReads(sql),
    preload: preload.preloadReads(sql),
    operations: operation.operationReads(sql),
    follows: follow.followReads(sql),
    activationAttempts: attempt.attemptReads(sql),
  };
}

/** Only the committer may pass these tables to use cases. */
export function prepareTransaction(database: DatabaseSync): Transaction {
  const sql = sqlOn(database);
  const changes = collectChanges();
  const shared = sharedTables(sql);
  const history = license.historyTable(sql);
  const tables: Transaction = {
    ...shared,
    ...localTables(sql),
    purchases: purchase.purchaseTable(sql),
    licenses: license.licenseTable(sql, history),
    history,
    mirror: mirror.mirrorTable(sql),
    snapshots: snapshot.snapshotTable(sql),
    preload: preload.preloadTable(sql),
    operations: operation.operationTable(sql),
    follows: follow.followTable(sql),
    activationAttempts: attempt.attemptTable(sql),
    trace: collectTrace(),
    changes,
    events: collectEvents(),
    attempt: attemptOn(sql),
  };
  return trackChanges(tables, changes);
}

function attemptOn(sql: SqliteSql): Attempt {
  const open = sql.run('SAVEPOINT attempt');
  const undo = sql.run('ROLLBACK TO attempt');
  const close = sql.run('RELEASE attempt');
  return async (work) => {
    open();
    // If it throws, the whole transaction is rolled back.
    const result = await work();
    if (!result.ok) undo();
    close();
    return result;
  };
}
