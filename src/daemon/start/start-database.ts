import type { Configuration } from '../../config/configuration.ts';
import { isRefusal } from '../../service/access/idempotency.ts';
import { rememberedTime } from '../../service/lifecycle/clock-mark.ts';
import { logKey } from '../../service/lifecycle/log-key.ts';
import type { Log } from '../../service/ports.ts';
import type { AuthorityReader } from '../../service/tables.ts';
import { takeDirectory } from '../../store/sqlite/files/open.ts';
import { Database } from '../../store/postgres/database.ts';
import { migrate } from '../../store/postgres/migrations.ts';
import { PostgresRefused, refusalOf } from '../../store/postgres/refusal.ts';
import { Notices } from '../../store/postgres/notices.ts';
import { PostgresWriter } from '../../store/postgres/writer.ts';
import { Daemon } from '../daemon.ts';
import { directAddressOf, databaseSettings, type PostgresSettings } from '../store/database-settings.ts';
import { findLeftBehind } from '../store/left-behind.ts';
import { DatabaseWait } from './database-wait.ts';
import { DatabaseTime, DatabaseWriter } from '../store/database-writer.ts';
import type { ConnectionCounts } from '../gauges.ts';
import { LiveConfiguration } from '../live-configuration.ts';
import { hashLicenseKeys, logOf } from '../log/derived.ts';
import { metricsOf } from '../metrics.ts';
import { CopyMemory, copyRole } from '../role/copy.ts';
import { rememberedCounts } from '../store/license-counts.ts';
import { knowingOwnToken } from '../role/own-token.ts';
import type { Role, RoleParts } from '../role/role.ts';
import type { DaemonOptions } from './start.ts';
import { copyNameOf, copyRun, startCopy, tellOfApiKey } from './start-copy.ts';
import { PersistentClock, machineTime } from '../system/clock.ts';
import { sha256, systemRandom } from '../system/random.ts';
import { keepSecretFile } from '../system/secret-files.ts';

/**
 * Starts one of the copies of an authority on PostgreSQL: its state directory holds its sockets, `listen.json` and an
 * admin token of its own. Rejects with `PostgresRefused`, or with `PostgresAway` when the database stays away.
 */
export async function startOnDatabase(
  configuration: Configuration,
  postgres: PostgresSettings,
  options: DaemonOptions,
): Promise<Daemon> {
  await using starting = new AsyncDisposableStack();
  starting.use(takeDirectory(configuration.stateDir));
  const database = starting.use(
    new Database({ ...databaseSettings(postgres), copy: copyNameOf(configuration.stateDir) }),
  );
  const { reader, names } = database;
  const { time = machineTime, signal = new AbortController().signal } = options;
  const storeLog = logOf(options.log, 'store');
  const wait = new DatabaseWait(database, { time, log: storeLog, signal });
  await wait.until(() => refuseLeftBehind(configuration, database));
  await wait.until(() => migrate(database));
  const common = new DatabaseTime(time);
  const clock = await wait.until(() => startClock(database, common));
  // Where the machine slept, its own clock is the first that tells.
  const memory = new CopyMemory({ now: () => time.read().wall, elapsed: () => clock.elapsed() });
  // A server that is changed is asked each time, or its changes would be passed by.
  const knownGrants = options.prepare === undefined ? memory : null;
  const current = new LiveConfiguration(configuration);
  const metrics = starting.use(metricsOf(configuration));
  const plain = new PostgresWriter(database, {
    run: copyRun(configuration.stateDir),
    isRefusal,
    context: (databaseNow) => ({
      now: databaseNow ?? clock.now(),
      elapsed: clock.elapsed(),
      random: systemRandom,
      digest: sha256,
      keepsHistory: current.configuration.history.keepMs > 0,
    }),
    clock,
    random: systemRandom,
    onCredentialsChanged: () => memory.forget(),
    onRepeat: (reason) => {
      metrics.repeated(reason);
      storeLog.debug({ kind: reason }, 'a write is begun again');
    },
    onTried: (measure) => metrics.transacted(measure),
    timer: () => performance.now(),
  });
  const writer = starting.use(new DatabaseWriter(plain, { database, clock, time: common, log: storeLog }));
  starting.use(hearNotices(postgres, { names, clock, memory, log: storeLog }));
  const { instance, log } = await wait.until(() => join(configuration, { writer, reader, log: options.log }));
  // No answer is remembered: another copy may have changed the license.
  const remembered = { memory: null, knownGrants };
  const parts = { instance, current, reader, local: null, writer, clock, log, metrics, ...remembered };
  const licenses = rememberedCounts(reader, { clock, answers: () => canBeRead(writer) });
  const token = keepSecretFile(configuration.stateDir, 'adminToken', 'lk_tok');
  const makeRole = (role: RoleParts): Role => knowingOwnToken(copyRole({ ...role, reader, memory }), token);
  const connections = (): ConnectionCounts => ({ ...database.use, most: postgres.pool });
  const daemon = new Daemon({ ...parts, licenses, connections, makeRole });
  await daemon.open(options.prepare ?? (() => undefined), starting.move());
  return daemon;
}

function hearNotices(
  postgres: PostgresSettings,
  {
    names,
    clock,
    memory,
    log,
  }: Pick<Database, 'names'> & { clock: PersistentClock; memory: CopyMemory; log: Log },
): Notices {
  return new Notices({
    address: directAddressOf(postgres),
    names,
    clock,
    random: systemRandom,
    onNotice: () => memory.forget(),
    onHearing: tellHearing(log),
  });
}

async function startClock(database: Database, time: DatabaseTime): Promise<PersistentClock> {
  await time.follow(database);
  return new PersistentClock(await rememberedTime(database.reader), time);
}

/** Throws `PostgresRefused` where the authority's records have not been moved yet; the database is left as it is. */
async function refuseLeftBehind({ stateDir }: Configuration, database: Database): Promise<void> {
  const found = await findLeftBehind(stateDir, database).catch((error: unknown) => {
    throw refusalOf(error, database) ?? error;
  });
  if (found === null) return;
  throw new PostgresRefused(`${found.what}: ${found.advice}.`, { isConfigured: true });
}

/** Takes the store into use; gives the id of its instance, and the log in which license keys are hashed by its key. */
async function join(
  configuration: Configuration,
  { writer, reader, log }: { writer: DatabaseWriter; reader: AuthorityReader; log: Log },
): Promise<{ instance: string; log: Log }> {
  const instance = await startCopy(configuration, writer);
  await tellOfApiKey(configuration.stateDir, reader, logOf(log, 'daemon'));
  return { instance, log: hashLicenseKeys(log, await logKey(reader)) };
}

function canBeRead({ storage }: DatabaseWriter): boolean {
  return storage === 'ok' || storage === 'full' || storage === 'read_only';
}

function tellHearing(log: Log): (error: unknown) => void {
  return (error) => {
    if (error === null) log.info({}, 'notices of other copies are heard again');
    else
      log.warn(
        { err: error },
        'notices of other copies are not heard: what they revoke ends within a second',
      );
  };
}
