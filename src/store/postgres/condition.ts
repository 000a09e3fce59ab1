import type { Connection } from './connection.ts';
import type { Database } from './database.ts';
import { isTimeout, sqlState, sqlStates, transactionFault, refusalOf } from './faults.ts';
import { examineAgain } from './migrations.ts';

/**
 * How a database can be used. `refused`: it is of no use for this node until somebody sees to it; all others pass by
 * themselves. While it is `full` or `read_only`, reading goes on.
 */
export type DatabaseCondition = 'ok' | 'unavailable' | 'slow' | 'full' | 'read_only' | 'refused';

/** How a database was found, and the error by which that was told (null: it is `ok`). */
export type FoundCondition = { condition: DatabaseCondition; cause: unknown };

/** What is put on the disk, and away again, to see whether it is full: rows of nearly 2 kB, a MiB of them. */
const roomRows = 520;
const roomRow = 1_900;

/** Looks whether a database can be used. `wasFull`: its disk was, so that it is tried whether it still is. */
export async function look(database: Database, wasFull: boolean): Promise<FoundCondition> {
  try {
    // A connection to a database that only reads is given up: another may lead to the one that writes.
    await database.lend(async (connection) => {
      await examineAgain(connection);
      if (wasFull) await takeRoom(connection);
    });
    return { condition: 'ok', cause: null };
  } catch (error) {
    return foundBy(error, database);
  }
}

/**
 * Rejects where there is no room: only a relation that grows tells. Unlogged, it takes none in the log of the
 * database. A role that may not make one, or two nodes that try at once, tell nothing.
 */
async function takeRoom(connection: Connection): Promise<void> {
  const table = connection.names.of('room');
  await connection.begin(null, []);
  const rows = `SELECT repeat('.', ${roomRow}) FROM generate_series(1, ${roomRows})`;
  try {
    await connection.query(`CREATE UNLOGGED TABLE ${table} AS ${rows}`);
  } catch (error) {
    if (transactionFault(error) === 'full') throw error;
  }
  await connection.rollback();
}

function foundBy(error: unknown, database: Database): FoundCondition {
  const refusal = refusalOf(error, database);
  if (refusal !== null) return { condition: 'refused', cause: refusal };
  return { condition: conditionOf(error), cause: error };
}

function conditionOf(error: unknown): DatabaseCondition {
  if (transactionFault(error) === 'full') return 'full';
  const state = sqlState(error);
  if (state === sqlStates.readOnlyTransaction) return 'read_only';
  return isTimeout(error) || state === sqlStates.queryCanceled ? 'slow' : 'unavailable';
}
