import type { Attempt, AuthorityReader, AuthorityTransaction } from '../../../service/tables.ts';
import { collectEvents } from '../../../store/changes.ts';
import { sharedReads, sharedTables } from '../../../store/tables.ts';
import { sqlOn, statementOf, writingSqlOn, type Source, type WritingSource } from './statements.ts';
import * as license from './tables/license.ts';
import * as purchase from './tables/purchase.ts';

export function prepareReader(source: Source): AuthorityReader {
  const sql = sqlOn(source);
  return {
    ...sharedReads(sql),
    purchases: purchase.purchaseReads(sql),
    licenses: license.licenseReads(sql),
    history: license.historyReads(sql),
  };
}

/** Only the writer may pass these tables to use cases. */
export function prepareTransaction(source: WritingSource): AuthorityTransaction {
  const sql = writingSqlOn(source);
  return {
    ...sharedTables(sql),
    purchases: purchase.purchaseTable(sql),
    licenses: license.licenseTable(sql),
    history: license.historyTable(sql),
    events: collectEvents(),
    attempt: attemptOn(source),
  };
}

const savepoint = {
  open: statementOf('SAVEPOINT attempt'),
  undo: statementOf('ROLLBACK TO SAVEPOINT attempt'),
  close: statementOf('RELEASE SAVEPOINT attempt'),
};

function attemptOn(source: WritingSource): Attempt {
  return async (work) => {
    source.send(savepoint.open, []);
    // If it throws, the whole transaction is rolled back.
    const result = await work();
    if (!result.ok) source.send(savepoint.undo, []);
    source.send(savepoint.close, []);
    return result;
  };
}
