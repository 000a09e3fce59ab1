import { hash, randomBytes, randomUUID } from 'node:crypto';
import { backUp } from '../../../src/store/sqlite/files/backup.ts';
import { Backups } from '../../../src/daemon/store/backups.ts';
import type { App } from '../../../src/http/app.ts';
import { isFailure } from '../../../src/domain/problem/problem.ts';
import type { WriterContext } from '../../../src/service/ports.ts';
import { runUseCase } from '../../../src/service/run.ts';
import type { Reader, Transaction } from '../../../src/service/tables.ts';
import { openReading, openWriting } from '../../../src/store/sqlite/connection.ts';
import { openStore } from '../../../src/store/sqlite/files/open.ts';
import { localWriter } from '../../../src/store/sqlite/commit.ts';
import { VirtualTime } from '../harness/virtual-clock.ts';
import { engineOfProject, type StoreOfApp } from './engine.ts';

/** The store of an app. */
export interface AppStore extends StoreOfApp {
  /** Null on another engine, which has no agents. */
  readonly local: { readonly reader: Reader; readonly transaction: Transaction } | null;
}

/** An empty store; `directory` is the state directory of its app. `write` writes what the API cannot create. */
export async function openAppStore(role: App['role'], directory: string): Promise<AppStore> {
  return role === 'authority' && engineOfProject !== null
    ? { ...(await engineOfProject.openFor(context)), local: null }
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

function context(databaseNow: number | null = null): WriterContext {
  return {
    now: databaseNow ?? Date.now(),
    monotonic: Date.now(),
    random: { bytes: (count) => randomBytes(count), uuid: () => randomUUID(), fraction: () => 0.5 },
    digest,
    recordsHistory: true,
  };
}
