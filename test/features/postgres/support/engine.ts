import { randomUUID } from 'node:crypto';
import { failWith } from '../../../../src/domain/problem/problem.ts';
import type { DatabaseAddress } from '../../../../src/features/postgres/store/client.ts';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { migrate } from '../../../../src/features/postgres/store/migrations.ts';
import type { AuthorityStore, TestEngine } from '../../../support/app/engine.ts';
import { urlOf } from './postgres-url.ts';
import { writerOn } from './postgres-writer.ts';

const newSchema = (): string => `app_${randomUUID().replaceAll('-', '_')}`;

/** Runs the tests of both engines on PostgreSQL. `server`: as `setup` provides it. */
export function testEngine(server: unknown): TestEngine {
  const address = server as DatabaseAddress;
  const open = async (): Promise<Database> => {
    const database = new Database({ address, schema: newSchema(), pool: 4, statementTimeoutMs: 5_000 });
    await migrate(database);
    return database;
  };
  return {
    settings: () => ({ store: { postgres: { url: urlOf(address), schema: newSchema(), pool: 4 } } }),
    open: async () => storeOn(await open()),
    async openFor(context) {
      const database = await open();
      return {
        ...storeOn(database),
        writer: writerOn(database, { context }),
        backup: async () =>
          failWith('backed_up_by_the_database', 'The records are in PostgreSQL: use pg_dump.'),
      };
    },
  };
}

function storeOn(database: Database): AuthorityStore {
  return {
    reader: database.reader,
    write: (work) =>
      database.lend(async (connection) => {
        await connection.begin(null, []);
        const value = await work(connection.transaction);
        await connection.commit();
        return value;
      }),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}
