import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Configuration } from '../../config/configuration.ts';
import { defaultAccountId } from '../../domain/access/principal.ts';
import { roleMark, roleWithArticle } from '../../domain/role.ts';
import { counted } from '../../domain/text.ts';
import { isUnusedAuthority, roleOf, logKey } from '../../service/lifecycle/start.ts';
import { type Log, StorageError } from '../../service/ports.ts';
import type { AuthorityReader, Reader } from '../../service/tables.ts';
import { type Writer, Announcer } from '../../service/writer.ts';
import {
  StateDirectoryRefused,
  DatabaseRefused,
  restoreAdvice,
  StateDirectoryUnusable,
  storageFault,
} from '../../store/sqlite/faults.ts';
import { findDamage } from '../../store/sqlite/files/backup.ts';
import { PersistentClock, type TimeSource } from '../system/clock.ts';
import { machineId, sha256 } from '../system/machine.ts';
import { storedProducts } from '../../service/agent/products.ts';
import { storedTime } from '../../service/lifecycle/time-mark.ts';
import { openReading } from '../../store/sqlite/connection.ts';
import { LiveConfiguration } from '../live-configuration.ts';
import { hashLicenseKeys, logOf, OperationLog } from '../log.ts';
import type { Metrics, metricsOf as MetricsOf } from '../metrics.ts';
import { ReadingThread } from '../threads/reading-thread.ts';
import { startWriter } from '../threads/writer-thread.ts';
import type { OpenedStore } from './opened-store.ts';
import { ensureSecretFile, readSecretFile } from '../system/secret-files.ts';

type LocalStoreOptions = {
  log: Log;
  /** Default: the clocks of this machine. */
  time?: TimeSource;
};

/** Opens a store on this machine. Loads the modules of the next steps while the writer thread starts. */
export async function openLocalStore(
  databasePath: string,
  configuration: Configuration,
  options: LocalStoreOptions,
  resources: AsyncDisposableStack,
): Promise<OpenedStore> {
  const { role, stateDir } = configuration;
  const { reader } = resources.use(openReading(databasePath));
  const clock = new PersistentClock(await storedTime(reader), options.time);
  const current = new LiveConfiguration(configuration, storedProducts(reader.settings));
  const operationLog = new OperationLog(reader, (credential) => current.products.credentialName(credential));
  let metrics: Metrics | null = null;
  const changes = new Announcer();
  const starting = startWriter(databasePath, clock, {
    role,
    recordsHistory: () => current.configuration.history.keepMs > 0,
    onCommit: (measure) => metrics?.committed(measure),
    onChanged: (changed) => changes.announce(changed),
    onTraced: (traced) => operationLog.add(traced),
    onDiskSpace: (isFull) => logDiskSpace(logOf(options.log, 'store'), isFull),
  });
  const loading = loadModules(role);
  // Awaited below, after `resources` has the writer.
  loading.catch(() => undefined);
  const writer = resources.use(await starting);
  metrics = resources.use((await loading)(configuration));
  const { instance, adminToken } = await startStore(configuration, reader, writer);
  const log = hashLicenseKeys(options.log, await logKey(reader));
  operationLog.begin(logOf(log, 'sync'));
  if (role === 'authority') await warnOfApiKey(stateDir, reader, logOf(options.log, 'daemon'));
  // Each thread starts with its first read. Lists do not wait for exports.
  const { lists } = resources.use(new ReadingThread(databasePath));
  const exporting = resources.use(new ReadingThread(databasePath));
  const local = { reader, databasePath, lists, longRead: exporting.longRead };
  return { instance, adminToken, current, clock, log, metrics, changes, reader, writer, local, shared: null };
}

/** Loads the modules that `startDaemon` needs next. An authority does not load the modules of an agent. */
async function loadModules(role: Configuration['role']): Promise<typeof MetricsOf> {
  const [{ metricsOf }] = await Promise.all([
    import('../metrics.ts'),
    import('../compose.ts'),
    import('../role/role.ts').then(({ loadRole }) => loadRole(role)),
  ]);
  return metricsOf;
}

function logDiskSpace(log: Log, isFull: boolean): void {
  if (isFull) log.error({}, 'the disk is full: changes are refused until there is free space');
  else log.info({}, 'the disk has free space again: changes are accepted');
}

/**
 * Starts using a store. Writes `admin.token`, and on the first start of an authority `api.key`, before committing the
 * digests, so that after a crash every stored digest has a file with its secret. Returns the instance id of the store
 * and the admin token.
 * Rejects with `StateDirectoryRefused` if the store has another role.
 */
async function startStore(
  { role, stateDir, sync }: Configuration,
  reader: Reader,
  writer: Writer,
): Promise<{ instance: string; adminToken: string }> {
  await refuseOtherRole({ role, stateDir }, reader);
  const adminToken = ensureSecretFile(stateDir, 'adminToken', 'lk_tok');
  const store = {
    adminTokenDigest: sha256(adminToken),
    place: placeOfDirectory(stateDir),
  };
  const starting = {
    agent: () => writer.write('startAgent', { ...store, reconcileAfterMs: sync.reconcileAfterMs }),
    holder: () => writer.write('startHolder', store),
    authority: async () =>
      await writer.write('startAuthority', { ...store, apiKeyDigest: await firstApiKey(stateDir, reader) }),
  };
  const started = await starting[role]();
  if (!started.ok) throw new Error(started.problem.detail);
  return { instance: started.value.instance, adminToken };
}

/** The digest of the key in `api.key`, which the first start creates; null on later starts. */
export async function firstApiKey(stateDir: string, reader: AuthorityReader): Promise<string | null> {
  return (await reader.accounts.count({})) === 0
    ? sha256(ensureSecretFile(stateDir, 'apiKey', 'lk_api'))
    : null;
}

/** Whether an account has the key in `api.key`; null: the file has no key. */
export async function isApiKeyKnown(stateDir: string, reader: AuthorityReader): Promise<boolean | null> {
  const apiKey = readSecretFile(stateDir, 'apiKey') ?? '';
  return apiKey === '' ? null : (await reader.accounts.byKeyDigest(sha256(apiKey))) !== null;
}

/** Warns if no account has the key in `api.key`, for instance because an older backup was restored. */
async function warnOfApiKey(stateDir: string, reader: AuthorityReader, log: Log): Promise<void> {
  if ((await isApiKeyKnown(stateDir, reader)) !== false) return;
  const hint =
    `if a backup was restored, an older key is valid again: latchkey account rotate ${defaultAccountId}; ` +
    'if an older version rotated the key, it did not update the file: write the current key into api.key';
  log.warn({ hint }, 'the key in api.key matches no account');
}

/** With the other role, for instance because the upstream section was lost, a store would answer 404 for sold keys. */
async function refuseOtherRole(
  { role, stateDir }: Pick<Configuration, 'role' | 'stateDir'>,
  reader: Reader,
): Promise<void> {
  const storedRole = roleOf(reader);
  if (storedRole === null || storedRole === role) return;
  if (storedRole === 'authority' && (await isUnusedAuthority(reader))) return;
  const other = roleWithArticle[role];
  const elsewhere = `choose another state_dir for ${other}`;
  const found = `the configuration has ${roleMark[role]}`;
  const reasons = {
    agent:
      `it is an agent's, and ${found}: put the upstream back, or ${elsewhere}. To start with an empty store here, ` +
      `move the files away first; ${counted(reader.operations.unfinished(), 'change')} in them did not reach the upstream, and never would.`,
    authority:
      `it is an authority's, and ${found}: remove ${role === 'holder' ? 'leases.issuer' : 'the upstream'}, or ${elsewhere}. ` +
      `To start with an empty store here, move the files away first; the licenses of ${counted(reader.products.count({}), 'product')} ` +
      'are kept in them alone.',
    holder:
      `it is a holder's, and ${found}: put leases.issuer back, or ${elsewhere}. ` +
      'The key of this device and its leases are in it.',
  };
  throw new StateDirectoryRefused(stateDir, reasons[storedRole]);
}

/** Machine and path of a state directory. If they change, the directory was copied. */
export function placeOfDirectory(stateDir: string): string {
  const path = realpathSync(stateDir);
  // Windows compares paths without case.
  return `${machineId()} ${process.platform === 'win32' ? path.toLowerCase() : path}`;
}

/** Why a start failed on this database: it is damaged, or its directory cannot be written. */
export function explainFailedStart(error: unknown, databasePath: string): unknown {
  if (!(error instanceof StorageError) && storageFault(error) === null) return error;
  const damage = damageOf(databasePath);
  if (damage !== null) {
    return new DatabaseRefused(databasePath, `it is damaged (${damage}): ${restoreAdvice}`, error);
  }
  const cause = error instanceof StorageError ? (error.cause ?? error) : error;
  return new StateDirectoryUnusable(dirname(databasePath), cause);
}

/** Null also if the database cannot be read: the error of the start says why. */
function damageOf(databasePath: string): string | null {
  try {
    return findDamage(databasePath);
  } catch {
    return null;
  }
}
