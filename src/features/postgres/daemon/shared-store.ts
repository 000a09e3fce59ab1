import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Configuration } from '../../../config/configuration.ts';
import { failWith, isFailure } from '../../../domain/problem/problem.ts';
import { authorityRole, type Role, type RoleParts } from '../../../daemon/role/role.ts';
import { PersistentClock, machineTime, pause, type TimeSource } from '../../../daemon/system/clock.ts';
import { type Credentials, type KnownCredential } from '../../../service/access/credential.ts';
import type { RevokeToken } from '../../../service/access/token.ts';
import { authorityLicenseService } from '../../../service/authority/services.ts';
import { Announcer, type Writer } from '../../../service/writer.ts';
import { storedTime } from '../../../service/lifecycle/time-mark.ts';
import { logKey, apiKeyKeptAt, type StartAuthority } from '../../../service/lifecycle/start.ts';
import { type Log, StorageError } from '../../../service/ports.ts';
import { runUseCase } from '../../../service/run.ts';
import type { AuthorityReader } from '../../../service/tables.ts';
import { Database } from '../store/database.ts';
import { storageErrorOf, PostgresRefused, refusalOf, PostgresAway, reasonOf } from '../store/faults.ts';
import { migrate } from '../store/migrations.ts';
import { NotificationListener } from '../store/notifications.ts';
import { PostgresWriter, type PostgresWriterOptions } from '../store/writer.ts';
import { claimDirectory } from '../../../store/sqlite/files/open.ts';
import { stateFiles } from '../../../store/sqlite/files/state-directory.ts';
import { LiveConfiguration } from '../../../daemon/live-configuration.ts';
import { hashLicenseKeys, logOf } from '../../../daemon/log.ts';
import { metricsOf } from '../../../daemon/metrics.ts';
import { sha256, systemRandom, isSameDigest } from '../../../daemon/system/machine.ts';
import { ensureSecretFile } from '../../../daemon/system/secret-files.ts';
import { directAddressOf, databaseSettings, type PostgresSettings } from './database-settings.ts';
import { databaseMetrics, type DatabaseMetrics } from './database-metrics.ts';
import { DatabaseTime, DatabaseWriter } from './database-writer.ts';
import { findLeftBehind } from './left-behind.ts';
import { NodeCache, cachedCounts } from './node-cache.ts';
import type { Engine } from '../../../daemon/store/engine.ts';
import type { OpenedStore } from '../../../daemon/store/opened-store.ts';
import { firstApiKey, isApiKeyKnown, placeOfDirectory } from '../../../daemon/store/local-store.ts';
import { minuteMs } from '../../../domain/time.ts';

/**
 * Opens the store of a node of an authority on PostgreSQL. Rejects with `PostgresRefused`, or with `PostgresAway` if the
 * database stays unavailable.
 */
export async function openSharedStore(
  configuration: Configuration,
  options: Parameters<Engine['open']>[1],
  resources: AsyncDisposableStack,
): Promise<OpenedStore> {
  const { postgres } = configuration.store;
  if (postgres === null) throw new Error('the configuration has no database');
  resources.use(claimDirectory(configuration.stateDir));
  const database = resources.use(
    new Database({ ...databaseSettings(postgres), node: nodeNameOf(configuration.stateDir) }),
  );
  const { reader, names } = database;
  const { time = machineTime, signal = new AbortController().signal } = options;
  const storeLog = logOf(options.log, 'store');
  const wait = new DatabaseWait(database, { time, log: storeLog, signal });
  await wait.until(() => refuseLeftBehind(configuration, database));
  await wait.until(() => migrate(database));
  const databaseTime = new DatabaseTime(time);
  const clock = await wait.until(() => startClock(database, databaseTime));
  // After the machine slept, its own clock shows it first.
  const cache = new NodeCache({ now: () => time.read().wall, monotonic: () => clock.monotonic() });
  const current = new LiveConfiguration(configuration);
  const metrics = resources.use(metricsOf(configuration));
  const postgresWriter = openWriter(database, {
    configuration,
    current,
    clock,
    cache,
    metrics: databaseMetrics(metrics, () => ({ ...database.use, max: postgres.pool })),
    log: storeLog,
  });
  const writer = resources.use(
    new DatabaseWriter(postgresWriter, { database, clock, time: databaseTime, log: storeLog }),
  );
  const changes = new Announcer();
  resources.use(listenForNotifications(postgres, { names, clock, cache, changes, log: storeLog }));
  const { instance, log } = await wait.until(() =>
    startUsing(configuration, { writer, reader, log: options.log }),
  );
  const adminToken = ensureSecretFile(configuration.stateDir, 'adminToken', 'lk_tok');
  const shared: OpenedStore['shared'] = {
    role: (parts) => nodeRole(parts, { reader, cache, adminToken }),
    credentialCache: cache,
    backup: () => Promise.resolve(failWith('backed_up_by_the_database', backupAdvice)),
    licenses: cachedCounts(reader, { clock, isReadable: () => isReadable(writer) }),
  };
  return { instance, adminToken, current, clock, log, metrics, changes, reader, writer, local: null, shared };
}

type WriterParts = Pick<OpenedStore, 'current' | 'clock' | 'log'> & {
  configuration: Configuration;
  metrics: DatabaseMetrics;
  cache: NodeCache;
};

function openWriter(
  database: Database,
  { configuration, current, clock, cache, metrics, log }: WriterParts,
): PostgresWriter {
  return new PostgresWriter(database, {
    run: nodeRun(configuration.stateDir),
    isFailure,
    context: (databaseNow) => ({
      now: databaseNow ?? clock.now(),
      monotonic: clock.monotonic(),
      random: systemRandom,
      digest: sha256,
      recordsHistory: current.configuration.history.keepMs > 0,
    }),
    clock,
    random: systemRandom,
    onCredentialsChanged: () => cache.clear(),
    onRepeat: (reason) => {
      metrics.repeated(reason);
      log.debug({ kind: reason }, 'a write is retried');
    },
    onTried: (measure) => metrics.transacted(measure),
    timer: () => performance.now(),
  });
}

function listenForNotifications(
  postgres: PostgresSettings,
  {
    names,
    clock,
    cache,
    changes,
    log,
  }: Pick<Database, 'names'> & {
    clock: PersistentClock;
    cache: NodeCache;
    changes: Announcer;
    log: Log;
  },
): NotificationListener {
  return new NotificationListener({
    address: directAddressOf(postgres),
    names,
    clock,
    random: systemRandom,
    onNotification(licenseKey) {
      if (licenseKey === null) cache.clear();
      changes.announce([licenseKey === null ? 'anything' : { licenseKey }]);
    },
    onListening: logListening(log),
  });
}

async function startClock(database: Database, time: DatabaseTime): Promise<PersistentClock> {
  await time.follow(database);
  return new PersistentClock(await storedTime(database.reader), time);
}

/** Throws `PostgresRefused` if the records of the authority were not moved yet. Changes nothing. */
async function refuseLeftBehind({ stateDir }: Configuration, database: Database): Promise<void> {
  const leftBehind = await findLeftBehind(stateDir, database).catch((error: unknown) => {
    throw refusalOf(error, database) ?? error;
  });
  if (leftBehind === null) return;
  throw new PostgresRefused(`${leftBehind.what}: ${leftBehind.advice}.`, { isConfigured: true });
}

/** Starts using the store, and returns the instance id, and a log that hashes license keys with the key of the store. */
async function startUsing(
  configuration: Configuration,
  { writer, reader, log }: { writer: DatabaseWriter; reader: AuthorityReader; log: Log },
): Promise<{ instance: string; log: Log }> {
  const instance = await startNode(configuration, writer);
  await logApiKey(configuration.stateDir, reader, logOf(log, 'daemon'));
  return { instance, log: hashLicenseKeys(log, await logKey(reader)) };
}

function isReadable({ storage }: DatabaseWriter): boolean {
  return storage === 'ok' || storage === 'full' || storage === 'read_only';
}

function logListening(log: Log): (error: unknown) => void {
  return (error) => {
    if (error === null) log.info({}, 'notifications from other nodes arrive again');
    else
      log.warn(
        { err: error },
        'notifications from other nodes do not arrive: credentials that they revoke still work here for up to a second',
      );
  };
}

const backupAdvice = 'The records are in PostgreSQL: use pg_dump.';

/** The place of a store that all nodes share, wherever a node runs. */
const sharedPlace = 'postgres';
/** The length of the name of a node, in characters of a digest. */
const nodeNameLength = 12;

/**
 * Runs the use cases of a node, whose admin token is in a file here. If several nodes start on an empty database, the
 * node that holds the start lock creates the first account and writes `api.key`.
 */
export function nodeRun(stateDir: string): PostgresWriterOptions['run'] {
  const node = nodeNameOf(stateDir);
  return (transaction, request, context) => {
    if (request.name === 'revokeToken' || request.name === 'rotateToken') {
      const command = { ...(request.command as RevokeToken), node };
      return runUseCase(transaction, { ...request, command }, context);
    }
    if (request.name !== 'startAuthority') return runUseCase(transaction, request, context);
    return firstApiKey(stateDir, transaction).then((apiKeyDigest) => {
      const command = { ...(request.command as StartAuthority), apiKeyDigest };
      return runUseCase(transaction, { ...request, command }, context);
    });
  };
}

/** The name of a node among the nodes on a database. Containers differ in the name of their host alone. */
export function nodeNameOf(stateDir: string, host: string = hostname()): string {
  return sha256(`${host} ${placeOfDirectory(stateDir)}`).slice(0, nodeNameLength);
}

/** Starts using the shared store, with an admin token of this node. Returns the instance id. `writer` runs `nodeRun`. */
export async function startNode({ stateDir }: Configuration, writer: Writer): Promise<string> {
  const started = await writer.write('startAuthority', {
    adminTokenDigest: sha256(ensureSecretFile(stateDir, 'adminToken', 'lk_tok')),
    node: nodeNameOf(stateDir),
    place: sharedPlace,
    apiKeyDigest: null,
    apiKeyKeptAt: apiKeyPlace(stateDir),
  });
  if (!started.ok) throw new Error(started.problem.detail);
  return started.value.instance;
}

/** Logs where the first API key was written, if not here. Warns if no account has the key that is here. */
export async function logApiKey(stateDir: string, reader: AuthorityReader, log: Log): Promise<void> {
  const isKnown = await isApiKeyKnown(stateDir, reader);
  if (isKnown === null) {
    const at = await apiKeyKeptAt(reader);
    if (at !== null && at !== apiKeyPlace(stateDir))
      log.info({ at }, 'the first API key was written by another node');
  }
  if (isKnown !== false) return;
  const hint =
    'the key was rotated, or another node created the first account: write the current key into api.key';
  log.warn({ hint }, 'the key in api.key matches no account');
}

function apiKeyPlace(stateDir: string): string {
  return `${hostname()}:${join(stateDir, stateFiles.apiKey)}`;
}

/** How long a start waits for its database, in ms: less than the limit of systemd (90 s). */
const maxWaitMs = minuteMs;
/** How often the start tries the database, in ms. */
const retryMs = 1_000;

/** Waits for the database during a start: both may have been started together. */
export class DatabaseWait {
  readonly #database: Pick<Database, 'place'>;
  readonly #parts: { time: TimeSource; log: Log; signal: AbortSignal };
  readonly #endsAt: number;
  #isLogged = false;

  constructor(database: Pick<Database, 'place'>, parts: { time: TimeSource; log: Log; signal: AbortSignal }) {
    this.#database = database;
    this.#parts = parts;
    this.#endsAt = parts.time.read().monotonic + maxWaitMs;
  }

  /**
   * Runs a step of the start as soon as the database can be used. Rejects with `PostgresRefused` at once, with
   * `PostgresAway` after the time limit, and with the reason of the signal.
   */
  async until<Value>(step: () => Promise<Value>): Promise<Value> {
    const { time, signal } = this.#parts;
    for (;;) {
      try {
        return await step();
      } catch (error) {
        const isTemporary =
          !(error instanceof PostgresRefused) && storageErrorOf(error) instanceof StorageError;
        if (!isTemporary) throw error;
        if (time.read().monotonic >= this.#endsAt) throw new PostgresAway(this.#database.place, error);
        this.#logOnce(error);
      }
      await pause(time, retryMs, signal);
      signal.throwIfAborted();
    }
  }

  #logOnce(error: unknown): void {
    if (this.#isLogged) return;
    this.#isLogged = true;
    const fields = { database: this.#database.place, error: reasonOf(error) };
    this.#parts.log.warn(fields, 'the database is not available yet: waiting for it');
  }
}

/** Builds one of the nodes of an authority on one database. A verify reads the database once. */
function nodeRole(
  parts: RoleParts,
  { reader, cache, adminToken }: { reader: AuthorityReader; cache: NodeCache; adminToken: string },
): Role {
  // The database runs long reads, so lists need no thread.
  const role = authorityRole({ ...parts, reader, lists: reader });
  const cachingReader = cache.products(reader);
  const digest = sha256(adminToken);
  const credentials = withOwnToken(role.credentials, digest);
  return {
    ...role,
    licenseService: authorityLicenseService(cachingReader, parts.writer, parts.clock),
    productName: async (productKey) => (await cachingReader.products.get(productKey))?.name ?? null,
    credentials,
    async bind() {
      await credentials.find({ kind: 'bearer', digest });
    },
  };
}

/** Keeps the admin token of this node valid while the database is unavailable, so that the status can be read. */
function withOwnToken(credentials: Credentials, digest: string): Credentials {
  let last: KnownCredential | null = null;
  return {
    async find(sent) {
      if (!isSameDigest(sent.digest, digest)) return await credentials.find(sent);
      try {
        last = await credentials.find(sent);
      } catch (error) {
        if (!(error instanceof StorageError)) throw error;
      }
      return last;
    },
    use: (knownCredential) => credentials.use(knownCredential),
  };
}
