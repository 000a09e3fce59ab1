import type { Connection } from './connection.ts';
import type { Database } from './database.ts';
import { isTimeout, sqlState, sqlStates, transactionFault, refusalOf } from './faults.ts';
import { examineExisting } from './migrations.ts';

/**
 * `refused`: the database cannot be used until an administrator fixes the problem. The other conditions may pass by
 * themselves. Reads still work in `full` and `read_only`.
 */
export type DatabaseCondition = 'ok' | 'unavailable' | 'slow' | 'full' | 'read_only' | 'refused';

/** `cause`: the error behind the condition; null for `ok`. */
export type CheckedCondition = { condition: DatabaseCondition; cause: unknown };

/** Rows of nearly 2 kB, 1 MiB in total, which are written and rolled back to test whether the disk is full. */
const roomRows = 520;
const roomRow = 1_900;

/** Checks whether a database can be used. `wasFull`: its disk was full, so also test whether it still is. */
export async function checkDatabase(database: Database, wasFull: boolean): Promise<CheckedCondition> {
  try {
    // A connection to a read-only database is closed: a new connection may reach the primary.
    await database.lend(async (connection) => {
      await examineExisting(connection);
      if (wasFull) await testForSpace(connection);
    });
    return { condition: 'ok', cause: null };
  } catch (error) {
    return conditionFrom(error, database);
  }
}

/**
 * Rejects if the disk is full. Only a growing relation shows this. The table is unlogged to use no space in the log. If
 * the role may not create a table, or two nodes try at once, the test has no result.
 */
async function testForSpace(connection: Connection): Promise<void> {
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

function conditionFrom(error: unknown, database: Database): CheckedCondition {
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
