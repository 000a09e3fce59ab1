import type { App } from '../../http/app.ts';
import type { ChangeFeed, Writer } from '../../service/writer.ts';
import type { LocalLists, AuthorityReader, Reader } from '../../service/tables.ts';
import { type Log, type Clock, StorageError } from '../../service/ports.ts';
import type { RecordCounts, StorageState } from '../../service/status.ts';
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
  longRead: App['longRead'];
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
type SharedNode = {
  cache: NodeCache;
  /** Counts the licenses; null if the database has not answered yet. */
  licenses: () => Promise<RecordCounts | null>;
  connections: () => ConnectionCounts;
};

/** An opened store: on this machine (`local`), or a database that several nodes share (`node`). */
export type OpenedStore = {
  /** The id of the store. */
  instance: string;
  /** The token in `admin.token` when this process started. */
  adminToken: string;
  current: LiveConfiguration;
  clock: PersistentClock;
  /** Hashes license keys with the key of the store. */
  log: Log;
  metrics: Metrics;
  changes: ChangeFeed;
  reader: AuthorityReader;
  writer: StoreWriter;
} & ({ local: LocalStore; node: null } | { local: null; node: SharedNode });

/** Counts the licenses of an authority. Its own records are always fresh. */
export async function countLicenses({ licenses }: AuthorityReader): Promise<RecordCounts> {
  const fresh = await licenses.count({ enabled: true });
  return { fresh, stale: 0, grace: 0, expired: 0, disabled: await licenses.count({ enabled: false }) };
}

/** How long a count is cached at least, in ms. */
const minCachedMs = 10_000;
/** A count is cached this many times as long as it took, so that counting takes a small part of the time. */
const cachedPerDuration = 50;

/**
 * Counts licenses in PostgreSQL, which reads every row: caches a count for a while, shares a running count among its
 * callers, and returns the last count while the database does not answer (null: there is none). Counter rows in the
 * database would make every sale wait for the same row.
 */
export function cachedCounts(
  reader: AuthorityReader,
  { clock, isReadable }: { clock: Pick<Clock, 'monotonic'>; isReadable: () => boolean },
): () => Promise<RecordCounts | null> {
  let last: RecordCounts | null = null;
  let until = 0;
  let counting: Promise<void> | null = null;
  const count = async (): Promise<void> => {
    const began = clock.monotonic();
    try {
      last = await countLicenses(reader);
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
    } finally {
      const now = clock.monotonic();
      until = now + Math.max(minCachedMs, (now - began) * cachedPerDuration);
      counting = null;
    }
  };
  return async () => {
    if (clock.monotonic() >= until && isReadable()) await (counting ??= count());
    return last;
  };
}
