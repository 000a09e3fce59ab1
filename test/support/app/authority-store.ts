import type { AuthorityReader, AuthorityTransaction } from '../../../src/service/tables.ts';
import { createTestStore } from '../builders/store-builders.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../postgres/postgres.ts';

/** An authority's store on one engine. */
export interface AuthorityStore extends AsyncDisposable {
  readonly reader: AuthorityReader;
  /** Runs some writes in a transaction. */
  write<Value>(work: (transaction: AuthorityTransaction) => Promise<Value>): Promise<Value>;
}

/** An engine; `open` makes an empty store on it. Dispose the engine after its last store. */
export interface Engine extends AsyncDisposable {
  open(): Promise<AuthorityStore>;
}

async function sqlite(): Promise<Engine> {
  return {
    async open() {
      const store = createTestStore();
      const { database, transaction } = store.writing;
      return {
        reader: store.reading.reader,
        async write(work) {
          database.exec('BEGIN');
          try {
            const value = await work(transaction);
            database.exec('COMMIT');
            return value;
          } catch (error) {
            database.exec('ROLLBACK');
            throw error;
          }
        },
        [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
      };
    },
    async [Symbol.asyncDispose]() {},
  };
}

async function postgres(): Promise<Engine> {
  const server: PostgresServer = await startPostgres();
  return {
    async open() {
      const database = await server.store();
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
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** The engines that this machine can test. */
export const engines: readonly { name: string; start: () => Promise<Engine> }[] = [
  { name: 'SQLite', start: sqlite },
  ...(hasPostgres ? [{ name: 'PostgreSQL', start: postgres }] : []),
];
