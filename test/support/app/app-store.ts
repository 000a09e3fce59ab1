import { hash, randomBytes, randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { backUp } from '../../../src/store/sqlite/files/backup.ts';
import { Backups } from '../../../src/daemon/store/backups.ts';
import { failWith } from '../../../src/domain/problem/problem.ts';
import type { App } from '../../../src/http/app.ts';
import { isFailure } from '../../../src/service/access/records.ts';
import type { WriterContext } from '../../../src/service/ports.ts';
import { runUseCase } from '../../../src/service/run.ts';
import type { AuthorityTransaction, Awaitable, Reader, Transaction } from '../../../src/service/tables.ts';
import type { DatabaseAddress } from '../../../src/features/postgres/store/client.ts';
import { Database } from '../../../src/features/postgres/store/database.ts';
import { migrate } from '../../../src/features/postgres/store/migrations.ts';
import { openReading, openWriting } from '../../../src/store/sqlite/connection.ts';
import { openStore } from '../../../src/store/sqlite/files/open.ts';
import { localWriter } from '../../../src/store/sqlite/local-writer.ts';
import { urlOf } from '../postgres/postgres-url.ts';
import { writerOn } from '../postgres/postgres-writer.ts';
import { VirtualTime } from '../harness/virtual-clock.ts';

/** The database for the authorities of this test project; null: SQLite. */
export const postgresOfProject: DatabaseAddress | null = inject('postgres') ?? null;

/** The setting that gives an authority its own database on the engine of the test project. */
export function storeOfProject(): { store?: { postgres: { url: string; schema: string; pool: number } } } {
  if (postgresOfProject === null) return {};
  return { store: { postgres: { url: urlOf(postgresOfProject), schema: newSchema(), pool: 4 } } };
}

function newSchema(): string {
  return `app_${randomUUID().replaceAll('-', '_')}`;
}

/** The store of an app. */
export interface AppStore extends AsyncDisposable, Pick<App, 'reader' | 'writer' | 'backup'> {
  /** Null on PostgreSQL, which has no agents. */
  readonly local: { readonly reader: Reader; readonly transaction: Transaction } | null;
  /** Writes directly to the store, for data that the API cannot create. */
  write<Value>(work: (transaction: AuthorityTransaction) => Awaitable<Value>): Promise<Value>;
}

/** An empty store; `directory` is the state directory of its app. */
export async function openAppStore(role: App['role'], directory: string): Promise<AppStore> {
  return role === 'authority' && postgresOfProject !== null
    ? await onPostgres(postgresOfProject)
    : onSqlite(directory);
}

export function digest(secret: string): string {
  return hash('sha256', secret, 'hex');
}

function onSqlite(directory: string): AppStore {
  const opened = new DisposableStack();
  const store = opened.use(openStore({ directory }));
  const { transaction, ...writing } = opened.use(openWriting(store.databasePath));
  const { reader } = opened.use(openReading(store.databasePath));
  const writer = localWriter({ ...writing, transaction }, { run: runUseCase, isFailure, context });
  const backups = new Backups(
    directory,
    async (path) => backUp(store.databasePath, path),
    new VirtualTime().clock(),
    new AbortController().signal,
  );
  return {
    reader,
    writer,
    local: { reader, transaction },
    backup: (signal) => backups.make(signal),
    write: async (work) => await work(transaction),
    async [Symbol.asyncDispose]() {
      opened.dispose();
    },
  };
}

async function onPostgres(address: DatabaseAddress): Promise<AppStore> {
  const database = new Database({ address, schema: newSchema(), pool: 4, statementTimeoutMs: 5_000 });
  await migrate(database);
  return {
    reader: database.reader,
    writer: writerOn(database, { context }),
    local: null,
    backup: async () => failWith('backed_up_by_the_database', 'The records are in PostgreSQL: use pg_dump.'),
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

function context(databaseNow: number | null = null): WriterContext {
  return {
    now: databaseNow ?? Date.now(),
    monotonic: Date.now(),
    random: { bytes: (count) => randomBytes(count), uuid: () => randomUUID(), fraction: () => 0.5 },
    digest,
    recordsHistory: true,
  };
}
