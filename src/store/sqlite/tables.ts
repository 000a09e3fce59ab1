import type { DatabaseSync } from 'node:sqlite';
import type { Attempt, Reader, Transaction } from '../../service/tables.ts';
import { collectChanges, collectEvents, collectTrace, trackChanges } from '../changes.ts';
import { localReads, localTables, sharedReads, sharedTables } from '../tables.ts';
import { sqlOn, type SqliteSql } from './statements.ts';
import * as license from './tables/license.ts';
import * as mirror from './tables/mirrored-coupon.ts';
import * as snapshot from './tables/license-snapshot.ts';
import * as operation from './tables/operation.ts';
import * as follow from './tables/follow.ts';
import * as preload from './tables/preload.ts';
import * as purchase from './tables/purchase.ts';

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
