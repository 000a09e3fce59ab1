import type { App } from '../../http/app.ts';
import type { ChangeFeed } from '../../service/writer.ts';
import type { LocalLists, AuthorityReader, Reader } from '../../service/tables.ts';
import type { Log } from '../../service/ports.ts';
import type { RecordCounts, StorageState } from '../../service/status.ts';
import type { Writer } from '../../service/writer.ts';
import type { ConnectionCounts } from '../gauges.ts';
import type { LiveConfiguration } from '../live-configuration.ts';
import type { Metrics } from '../metrics.ts';
import type { NodeCache } from '../role/role.ts';
import type { PersistentClock } from '../system/machine.ts';

/** A store on this machine, which this process alone uses. */
export type LocalStore = {
  reader: Reader;
  databasePath: string;
  /** Lists and exports are read in two threads of their own. */
  lists: LocalLists;
  exportPage: App['exportPage'];
};

/** Writes to the store, and knows its state. */
export interface StoreWriter extends Writer {
  /** Rejects when the storage has failed and every later write would fail; pending until then. */
  readonly lost: Promise<never>;
  /** The state of the store, except for damage. */
  readonly storage: Exclude<StorageState, 'damaged'>;
  /** Whether the oldest write has waited so long that the disk must hang. */
  readonly isStuck: boolean;
  /** Refuses every later write, because the store is damaged. */
  disable(cause: unknown): void;
}

/** One of the nodes of an authority that share a database. */
export type SharedNode = {
  cache: NodeCache;
  adminToken: string;
  /** Counts the licenses; null if the database has not answered yet. */
  licenses: () => Promise<RecordCounts | null>;
  connections: () => ConnectionCounts;
};

/** An opened store: on this machine (`local`), or a database that several nodes share (`node`). */
export type OpenedStore = {
  /** The id of the store. */
  instance: string;
  current: LiveConfiguration;
  clock: PersistentClock;
  /** Hashes license keys with the key of the store. */
  log: Log;
  metrics: Metrics;
  changes: ChangeFeed;
  reader: AuthorityReader;
  writer: StoreWriter;
} & ({ local: LocalStore; node: null } | { local: null; node: SharedNode });
