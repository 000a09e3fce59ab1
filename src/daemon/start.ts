import type { FastifyInstance } from 'fastify';
import type { Configuration } from '../config/configuration.ts';
import type { AnnouncedCredentialCache as CredentialCache } from '../http/entry/admission.ts';
import { storedProducts } from '../service/agent/products.ts';
import { ChangeFeed } from '../service/writer.ts';
import { storedTime } from '../service/lifecycle/current-run.ts';
import { logKey } from '../service/lifecycle/start.ts';
import type { Log } from '../service/ports.ts';
import { openReading } from '../store/sqlite/connection.ts';
import type { OnMigration } from '../store/sqlite/files/migrations.ts';
import { openStore } from '../store/sqlite/files/open.ts';
import type { compose as Compose } from './compose.ts';
import type { Daemon } from './daemon.ts';
import { LiveConfiguration } from './live-configuration.ts';
import { hashLicenseKeys, logOf, OperationLog } from './log.ts';
import type { Metrics, metricsOf as MetricsOf } from './metrics.ts';
import { countLicenses } from './store/license-counts.ts';
import { explainFailedStart, startStore, warnOfApiKey } from './store/local-store.ts';
import type { LocalStore, OpenedStore } from './store/opened-store.ts';
import { PersistentClock, type TimeSource } from './system/machine.ts';
import { ReadingThread } from './threads/reading-thread.ts';
import { startWriter } from './threads/writer-thread.ts';

export type DaemonOptions = {
  log: Log;
  /** Changes a server before it listens, so that a sandbox can misbehave. */
  prepare?: (server: FastifyInstance) => void;
  /** Default: the clocks of this machine. */
  time?: TimeSource;
  /** Ends a start that waits for its database. */
  signal?: AbortSignal;
  onMigration?: OnMigration;
};

/**
 * Starts a daemon. Rejects with `StateDirectoryHeld`, `StateDirectoryUnusable`, `StateDirectoryRefused`,
 * `DatabaseRefused`, `PostgresRefused`, `PostgresAway` or `ListenError`, and then leaves nothing open. The upstream need
 * not be reachable.
 */
export async function startDaemon(configuration: Configuration, options: DaemonOptions): Promise<Daemon> {
  const { prepare = () => undefined } = options;
  const { postgres } = configuration.store;
  await using resources = new AsyncDisposableStack();
  if (postgres !== null) {
    const { openSharedStore } = await import('./store/shared-store.ts');
    const store = await openSharedStore(configuration, { ...options, postgres }, resources);
    const { compose } = await import('./compose.ts');
    return await compose(store, prepare, resources);
  }
  const { stateDir: directory } = configuration;
  const { databasePath } = resources.use(openStore({ directory, onMigration: options.onMigration }));
  try {
    const { store, compose } = await openLocalStore(databasePath, resources, configuration, options);
    return await compose(store, prepare, resources);
  } catch (error) {
    throw explainFailedStart(error, databasePath);
  }
}

/** Opens a store on this machine. Loads the other modules while the thread of the writer starts. */
async function openLocalStore(
  databasePath: string,
  resources: AsyncDisposableStack,
  configuration: Configuration,
  options: DaemonOptions,
): Promise<{ store: OpenedStore; compose: typeof Compose }> {
  const { reader } = resources.use(openReading(databasePath));
  const clock = new PersistentClock(await storedTime(reader), options.time);
  const current = new LiveConfiguration(configuration, storedProducts(reader.settings));
  const operationLog = new OperationLog(reader, (credential) => current.products.credentialName(credential));
  let metrics: Metrics | null = null;
  const changes = new ChangeFeed();
  const starting = startWriter(databasePath, clock, {
    role: configuration.role,
    recordsHistory: () => current.configuration.history.keepMs > 0,
    onCommit: (measure) => metrics?.committed(measure),
    onChanged: (changed) => changes.announce(changed),
    onTraced: (traced) => operationLog.add(traced),
    onDiskSpace: (isFull) => logDiskSpace(logOf(options.log, 'store'), isFull),
  });
  const loading = loadModules(configuration);
  // Awaited below, after `resources` has the writer.
  loading.catch(() => undefined);
  const writer = resources.use(await starting);
  const { compose, metricsOf, AnnouncedCredentialCache } = await loading;
  metrics = resources.use(metricsOf(configuration));
  const instance = await startStore(configuration, reader, writer);
  const log = hashLicenseKeys(options.log, await logKey(reader));
  operationLog.begin(logOf(log, 'sync'));
  if (configuration.role === 'authority')
    await warnOfApiKey(configuration.stateDir, reader, logOf(options.log, 'daemon'));
  const store = {
    instance,
    current,
    clock,
    log,
    metrics,
    reader,
    writer,
    local: { reader, databasePath, ...readInThreads(databasePath, resources) },
    node: null,
    licenses: () => countLicenses(reader),
    connections: null,
    changes,
    // Where `prepare` changes the server, each request must pass the whole server.
    cachesResponses: options.prepare === undefined,
    credentialCache: new AnnouncedCredentialCache(changes),
  };
  return { store, compose };
}

/** An authority does not load the modules of an agent. */
async function loadModules({ role }: Configuration): Promise<Modules> {
  const [{ compose }, { metricsOf }, { AnnouncedCredentialCache }] = await Promise.all([
    import('./compose.ts'),
    import('./metrics.ts'),
    import('../http/entry/admission.ts'),
    role === 'agent' ? import('./role/agent.ts') : null,
  ]);
  return { compose, metricsOf, AnnouncedCredentialCache };
}

type Modules = {
  compose: typeof Compose;
  metricsOf: typeof MetricsOf;
  AnnouncedCredentialCache: typeof CredentialCache;
};

/** Each thread starts with its first read. Lists do not wait for exports. */
function readInThreads(
  databasePath: string,
  resources: AsyncDisposableStack,
): Pick<LocalStore, 'lists' | 'exportPage'> {
  const { lists } = resources.use(new ReadingThread(databasePath));
  const exporting = resources.use(new ReadingThread(databasePath));
  return { lists, exportPage: (order) => exporting.exportPage(order) };
}

function logDiskSpace(log: Log, isFull: boolean): void {
  if (isFull) log.error({}, 'the disk is full: changes are refused until there is free space');
  else log.info({}, 'the disk has free space again: changes are accepted');
}
