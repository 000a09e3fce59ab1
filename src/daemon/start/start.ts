import type { FastifyInstance } from 'fastify';
import type { Configuration } from '../../config/configuration.ts';
import { rememberedTime } from '../../service/lifecycle/clock-mark.ts';
import { logKey } from '../../service/lifecycle/log-key.ts';
import { storedProducts } from '../../service/agent/products.ts';
import type { Log } from '../../service/ports.ts';
import { openReading } from '../../store/sqlite/connection.ts';
import type { Memory } from '../../http/memory.ts';
import type { OnMigration } from '../../store/sqlite/files/migrations.ts';
import { openStore } from '../../store/sqlite/files/open.ts';
import type { Daemon } from '../daemon.ts';
import { explainFailedStart } from './damaged-start.ts';
import { LiveConfiguration } from '../live-configuration.ts';
import { countLicenses } from '../store/license-counts.ts';
import { hashLicenseKeys, logOf } from '../log/derived.ts';
import { OperationLog } from '../log/operation-log.ts';
import type { Metrics } from '../metrics.ts';
import type { Role, RoleParts } from '../role/role.ts';
import { startStore, warnOfApiKey } from './start-store.ts';
import type { LocalStore } from '../store/store-writer.ts';
import { PersistentClock, type TimeSource } from '../system/clock.ts';
import { ReadingThread } from '../threads/reading-thread.ts';
import { startWriter } from '../threads/writer-thread.ts';

export type DaemonOptions = {
  log: Log;
  /** Changes a server before it listens: how a sandbox misbehaves. */
  prepare?: (server: FastifyInstance) => void;
  /** Default: the clocks of this machine. */
  time?: TimeSource;
  /** Ends a start that waits for its database. */
  signal?: AbortSignal;
  onMigration?: OnMigration;
};

/**
 * Starts a process with this configuration. Rejects with `StateDirectoryHeld`, `StateDirectoryUnusable`,
 * `StateDirectoryRefused`, `DatabaseRefused`, `PostgresRefused`, `PostgresAway` or `ListenError`, and leaves nothing open then.
 * An upstream that is away is no fault.
 */
export async function startDaemon(configuration: Configuration, options: DaemonOptions): Promise<Daemon> {
  const { postgres } = configuration.store;
  if (postgres !== null) {
    const { startOnDatabase } = await import('./start-database.ts');
    return await startOnDatabase(configuration, postgres, options);
  }
  await using starting = new AsyncDisposableStack();
  const { stateDir: directory } = configuration;
  const { databasePath } = starting.use(openStore({ directory, onMigration: options.onMigration }));
  try {
    return await startOn(databasePath, starting, configuration, options);
  } catch (error) {
    throw explainFailedStart(error, databasePath);
  }
}

async function startOn(
  databasePath: string,
  starting: AsyncDisposableStack,
  configuration: Configuration,
  options: DaemonOptions,
): Promise<Daemon> {
  const { reader } = starting.use(openReading(databasePath));
  const local: LocalStore = { reader, databasePath, ...readInThreads(databasePath, starting) };
  const clock = new PersistentClock(await rememberedTime(reader), options.time);
  const current = new LiveConfiguration(configuration, storedProducts(reader.settings));
  const operationLog = new OperationLog(reader, (credential) => current.products.credentialName(credential));
  let metrics: Metrics | null = null;
  let memory: Memory | null = null;
  const starts = startWriter(databasePath, clock, {
    role: configuration.role,
    keepsHistory: () => current.configuration.history.keepMs > 0,
    onCommit: (measure) => metrics?.committed(measure),
    onChanged: (changes) => memory?.forget(changes),
    onTraced: (traced) => operationLog.add(traced),
    onDiskSpace: (isFull) => tellRoom(logOf(options.log, 'store'), isFull),
  });
  // Loaded while the writer's thread starts.
  const loads = Promise.all([
    import('../daemon.ts'),
    import('../metrics.ts'),
    import('../../http/memory.ts'),
  ]);
  const loadsRole = loadRole(configuration, local);
  // Awaited below, when the thread has an owner that ends it.
  for (const load of [loads, loadsRole]) load.catch(() => undefined);
  const writer = starting.use(await starts);
  const [{ Daemon }, { metricsOf }, { Memory }] = await loads;
  const makeRole = await loadsRole;
  metrics = starting.use(metricsOf(configuration));
  // A server that is changed is asked each time, or its changes would be passed by.
  memory = options.prepare === undefined ? new Memory() : null;
  const instance = await startStore(configuration, reader, writer);
  const log = hashLicenseKeys(options.log, await logKey(reader));
  operationLog.begin(logOf(log, 'sync'));
  if (configuration.role === 'authority')
    await warnOfApiKey(configuration.stateDir, reader, logOf(options.log, 'daemon'));
  const parts = {
    instance,
    current,
    reader,
    licenses: () => countLicenses(reader),
    connections: null,
    local,
    writer,
    clock,
    log,
    metrics,
    memory,
    knownGrants: memory,
    makeRole,
  };
  const daemon = new Daemon(parts);
  await daemon.open(options.prepare ?? (() => undefined), starting.move());
  return daemon;
}

/** Neither thread starts before something is read. Lists do not wait for exports. */
function readInThreads(
  databasePath: string,
  starting: AsyncDisposableStack,
): Pick<LocalStore, 'lists' | 'exportPage'> {
  const { lists } = starting.use(new ReadingThread(databasePath));
  const exporting = starting.use(new ReadingThread(databasePath));
  return { lists, exportPage: (order) => exporting.exportPage(order) };
}

/** What an agent consists of, an authority does not load. */
async function loadRole(
  { role }: Configuration,
  local: Pick<LocalStore, 'reader' | 'lists'>,
): Promise<(parts: RoleParts) => Role> {
  if (role === 'agent') {
    const { agentRole } = await import('../role/agent.ts');
    return (parts) => agentRole({ ...parts, ...local });
  }
  const { authorityRole } = await import('../role/authority.ts');
  return (parts) => authorityRole({ ...parts, ...local });
}

function tellRoom(log: Log, isFull: boolean): void {
  if (isFull) log.error({}, 'the disk is full: changes are refused until there is room again');
  else log.info({}, 'there is room on the disk again: changes are taken');
}
