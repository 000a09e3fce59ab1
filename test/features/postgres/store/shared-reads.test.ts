import { expect, test } from 'vitest';
import { StorageError } from '../../../../src/service/ports.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';

test.skipIf(!hasPostgres)(
  'reads that share a connection are refused, and never fail, where the first of them could not be prepared',
  async () => {
    await using server = await startPostgres();
    await using database = await server.store({ pool: 4, statementTimeoutMs: 400 });
    const { tokens } = database.reader;
    const readAll = async (): Promise<unknown[]> => {
      const reads = await Promise.allSettled(['one', 'two', 'three'].map(async (id) => tokens.get(id)));
      return reads.map((read) => (read.status === 'fulfilled' ? read.value : read.reason));
    };
    await database.lend(async (connection) => {
      await connection.begin(null, []);
      // However slow the machine is, the lock is held until all are refused.
      await connection.query('SET LOCAL idle_in_transaction_session_timeout = 0');
      await connection.query(`LOCK TABLE ${database.names.of('token')} IN ACCESS EXCLUSIVE MODE`);
      expect(await readAll()).toEqual(Array.from({ length: 3 }, () => expect.any(StorageError)));
      await connection.rollback();
    });
    await expect.poll(readAll).toEqual([null, null, null]);
  },
);
