import type { App } from '../../http/app.ts';
import { isUpstreamKnown } from '../../service/outbox/upstream/identity.ts';
import type { Announcer, Writer } from '../../service/writer.ts';
import type { LocalLists, AuthorityReader, Reader, Awaitable } from '../../service/tables.ts';
import type { CredentialCache } from '../../service/access/credential.ts';
import type { Log } from '../../service/ports.ts';
import type { FreshnessCounts, StorageState } from '../../service/status.ts';
import type { LiveConfiguration } from '../live-configuration.ts';
import type { Metrics } from '../metrics.ts';
import type { Role, RoleParts } from '../role/role.ts';
import type { PersistentClock } from '../system/clock.ts';

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

/** A database that other processes use as well, which are authorities too. */
type SharedStore = {
  /** Builds the role of this process. */
  role: (parts: RoleParts) => Role;
  credentialCache: CredentialCache;
  backup: App['backup'];
  /** Counts the licenses; null if the database has not answered yet. */
  licenses: () => Promise<FreshnessCounts | null>;
};

/** An opened store: on this machine (`local`), or a database (`shared`). */
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
  changes: Announcer;
  reader: AuthorityReader;
  writer: StoreWriter;
} & ({ local: LocalStore; shared: null } | { local: null; shared: SharedStore });

/** Counts the licenses of an authority. Its own records are always fresh. */
export async function countLicenses({ licenses }: AuthorityReader): Promise<FreshnessCounts> {
  const fresh = await licenses.count({ enabled: true });
  return { fresh, stale: 0, grace: 0, expired: 0, disabled: await licenses.count({ enabled: false }) };
}

/** How long the epoch of a database is kept, in ms. It changes when another server takes over. */
const epochKeptMs = 1_000;

/** The epoch of the store, for the responses to agents. Null on an agent until it knows its upstream, and on a holder. */
export function epochOf({ reader, local, current, clock }: OpenedStore): App['epoch'] {
  const { role } = current.configuration;
  if (role === 'holder') return () => null;
  if (local !== null)
    return () => (role === 'agent' && !isUpstreamKnown(local.reader) ? null : local.reader.settings.epoch());
  let read: { epoch: Awaitable<string | null>; at: number } | null = null;
  return () => {
    const now = clock.monotonic();
    if (read === null || now - read.at > epochKeptMs) read = { epoch: reader.settings.epoch(), at: now };
    return read.epoch;
  };
}
