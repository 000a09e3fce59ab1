import { inject } from 'vitest';
import type { App } from '../../../src/http/app.ts';
import type { WriterContext } from '../../../src/service/ports.ts';
import type { AuthorityReader, AuthorityTransaction, Awaitable } from '../../../src/service/tables.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The module of another engine than SQLite, for all files of a project, and where its server is. */
    engine: { readonly module: string; readonly server: unknown } | undefined;
  }
}

/** The store of an authority. */
export interface AuthorityStore extends AsyncDisposable {
  readonly reader: AuthorityReader;
  /** Runs some writes in a transaction. */
  write<Value>(work: (transaction: AuthorityTransaction) => Awaitable<Value>): Promise<Value>;
  /** Makes all licenses faster to find, on an engine that does not do so by itself. */
  readonly index?: () => void;
}

/** Another engine than SQLite. */
export interface TestEngine {
  /** The settings that give an authority a database of its own. */
  settings(): { store: object };
  /** An empty store. */
  open(): Promise<AuthorityStore>;
  /** An empty store for the routes. */
  openFor(context: (now: number | null) => WriterContext): Promise<StoreOfApp>;
}

/** What an app needs of a store. */
export type StoreOfApp = AuthorityStore & Pick<App, 'reader' | 'writer' | 'backup'>;

const given = inject('engine');

/** The engine for the authorities of this test project; null: SQLite. */
export const engineOfProject: TestEngine | null =
  given === undefined ? null : await engineIn(given.module, given.server);

async function engineIn(path: string, server: unknown): Promise<TestEngine> {
  const module = (await import(path)) as { testEngine: (server: unknown) => TestEngine };
  return module.testEngine(server);
}

/** The settings that give an authority its own database on the engine of the test project. */
export function storeOfProject(): { store?: object } {
  return engineOfProject?.settings() ?? {};
}
