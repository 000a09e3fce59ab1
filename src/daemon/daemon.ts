import type { FastifyInstance } from 'fastify';
import type { Configuration } from '../config/configuration.ts';
import { changedKeys } from '../config/show.ts';
import { version } from '../config/version.ts';
import type { App } from '../http/app.ts';
import { TokenUses } from '../service/access/token-use.ts';
import type { Status } from '../service/status.ts';
import type { AuthorityReader } from '../service/tables.ts';
import { persist } from '../sync/waiting.ts';
import { appOf } from './app.ts';
import type { ConnectionCounts } from './gauges.ts';
import { Health } from './health.ts';
import { runMaintenance } from './maintenance.ts';
import { type Reloaded, takenOver } from './live-configuration.ts';
import { openListeners, type Addresses, type Listeners } from './listeners.ts';
import { logOf } from './log/derived.ts';
import type { Metrics } from './metrics.ts';
import { systemRandom } from './system/random.ts';
import type { Role, RoleParts } from './role/role.ts';
import { statusOf, type StatusParts } from './status.ts';
import { backupsOf } from './store/backups.ts';
import { DamageWatch } from './store/damage-watch.ts';
import type { LocalStore, StoreWriter } from './store/store-writer.ts';

/** How long a stop waits for what is in flight, in ms. */
const drainMs = 10_000;
/** How much longer those get who were waiting for the upstream and are answered with what is known, in ms. */
const lastAnswerMs = 1_000;

/** What a process is made of; `makeRole` makes it an agent or an authority. */
export type DaemonParts = Omit<RoleParts, 'lifetime' | 'meter' | 'tokenUses'> & {
  makeRole: (parts: RoleParts) => Role;
  reader: AuthorityReader;
  /** Counts those of an authority. */
  licenses: StatusParts['licenses'];
  /** Null: the store is on this machine. */
  connections: (() => ConnectionCounts) | null;
  writer: StoreWriter;
  /** Null: the store is a database on another machine, which looks after itself. */
  local: LocalStore | null;
  metrics: Metrics;
  memory: App['memory'];
  knownGrants: App['knownGrants'];
};

/** One running process: store, writer, listeners and, on an agent, the way up. */
export class Daemon {
  readonly #parts: DaemonParts;
  readonly #role: Role;
  readonly #startedAt: number;
  readonly #tokenUses = new TokenUses();
  /** Ends the loops, which then see to what is in flight. */
  readonly #loops = new AbortController();
  /** Ends what is in flight. */
  readonly #lifetime = new AbortController();
  /** Ends the wait for proxies to notice that this process stops. */
  readonly #hurry = new AbortController();
  #stopping: Promise<void> | null = null;
  readonly #health: Health;
  #listeners: Listeners | null = null;
  #owned: AsyncDisposable | null = null;
  #running: Promise<unknown> = Promise.resolve();
  #failed = Promise.withResolvers<never>();
  readonly #backup: App['backup'];
  /** Null: the store is a database on another machine. */
  readonly #damageWatch: DamageWatch | null;

  /** Use `startDaemon` (start/start.ts). */
  constructor(parts: DaemonParts) {
    this.#parts = parts;
    const roleParts = {
      ...parts,
      log: logOf(parts.log, 'sync'),
      meter: parts.metrics,
      tokenUses: this.#tokenUses,
      lifetime: this.#lifetime.signal,
    };
    this.#role = parts.makeRole(roleParts);
    const { local, clock, writer } = parts;
    const { stateDir } = parts.current.configuration;
    this.#health = new Health(writer, local);
    this.#backup = backupsOf(local, stateDir, clock, this.#lifetime.signal);
    this.#damageWatch =
      local === null
        ? null
        : new DamageWatch(local.databasePath, logOf(parts.log, 'store'), (damage) => this.#endWrites(damage));
    this.#startedAt = clock.elapsed();
    this.#failed.promise.catch(() => undefined);
  }

  /** Listens and runs. `owned` is disposed of by `stop`, or here if it cannot listen. */
  async open(prepare: (server: FastifyInstance) => void, owned: AsyncDisposableStack): Promise<void> {
    await using opening = owned;
    await this.#role.bind();
    const { current, log, writer, clock } = this.#parts;
    this.#listeners = await openListeners(current.configuration, this.#app(), (server) => {
      this.#parts.metrics.watch(server);
      prepare(server);
    });
    const opened = opening.move();
    this.#owned = opened;
    const { signal } = this.#loops;
    this.#running = Promise.all([
      this.#role.run(signal),
      runMaintenance(
        {
          writer,
          clock,
          random: systemRandom,
          isAgent: this.#role.upstream !== null,
          tokenUses: this.#tokenUses,
          historyKeepMs: () => current.configuration.history.keepMs,
          lastSuccessAt: () => this.#role.upstream?.status().lastSuccessAt ?? null,
          onSleep: () => this.#role.upstream?.probeNow(),
          lookForStore: () => this.#damageWatch?.lookForFile(),
          checkListeners: async () => await this.#listeners?.check(),
        },
        signal,
      ),
    ]);
    for (const end of [this.#running, writer.lost]) end.catch((error: unknown) => this.#fail(error));
    this.#health.become('ready');
    const role = { role: current.configuration.role, version };
    logOf(log, 'daemon').info({ ...role, ...this.addresses }, 'ready');
    // Not before: it takes a processor, and the longer the more the store holds.
    if (this.#damageWatch !== null) opened.use(this.#damageWatch.lookThrough());
  }

  get addresses(): Addresses {
    return this.#listeners?.addresses ?? { tcp: null, socket: null, sockets: [] };
  }

  /** Rejects when the store, or anything else that must run, failed; pending otherwise. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  async status(): Promise<Status> {
    return await statusOf(this.#statusParts());
  }

  /** Puts another configuration in force: secrets, products, rates, freshness. */
  reload(wanted: Configuration): Reloaded {
    const { current } = this.#parts;
    const { configuration: before } = current;
    const configuration = takenOver(before, wanted);
    current.replace(configuration);
    this.#parts.memory?.forget(['anything']);
    // A file of the same name may hold another one.
    const isRenewed = this.#listeners?.renewCertificate(configuration.listen.tls) ?? false;
    void this.#listeners?.check();
    const renewed = isRenewed ? ['listen.tls.cert_file'] : [];
    this.#role.upstream?.retryCredentials();
    this.#role.upstream?.probeNow();
    this.#bindAnew();
    return {
      changed: [...new Set([...changedKeys(before, configuration), ...renewed])],
      restart: changedKeys(configuration, wanted),
    };
  }

  /** Records the upstream and the products that are configured now; on a full disk, once there is room. */
  #bindAnew(): void {
    const { signal } = this.#loops;
    persist(this.#parts.clock, signal, () => this.#role.bind()).catch((error: unknown) => {
      if (!signal.aborted) this.#fail(error);
    });
  }

  /** Of a damaged store: it is not written to any more, and nothing goes up. False: it is out of use already. */
  #endWrites(damage: string): boolean {
    if (this.#health.phase !== 'ready') return false;
    this.#health.become('store_damaged');
    this.#parts.writer.refuse(new Error(damage));
    this.#loops.abort();
    return true;
  }

  /**
   * Goes on answering for `listen.drain_delay`, then answers what is in flight, and refuses what is new, then closes
   * everything that was opened.
   */
  async stop(): Promise<void> {
    this.#stopping ??= this.#leave().then(() => this.#drain());
    await this.#stopping;
  }

  /** Ends the wait of `listen.drain_delay`; false: there is none to end. */
  hurry(): boolean {
    if (this.#health.phase !== 'leaving') return false;
    this.#hurry.abort();
    return true;
  }

  async #leave(): Promise<void> {
    const { current, clock } = this.#parts;
    const { drainDelayMs } = current.configuration.listen;
    if (this.#health.phase !== 'ready' || drainDelayMs === 0) return;
    this.#health.become('leaving');
    await clock.sleep(drainDelayMs, this.#hurry.signal).catch(() => undefined);
  }

  async #drain(): Promise<void> {
    this.#health.become('draining');
    const cut = setTimeout(() => {
      this.#lifetime.abort();
    }, drainMs);
    await this.#listeners?.answered(drainMs + lastAnswerMs);
    await this.#listeners?.[Symbol.asyncDispose]();
    this.#loops.abort();
    await this.#running.catch(() => undefined);
    this.#lifetime.abort();
    clearTimeout(cut);
    await this.#owned?.[Symbol.asyncDispose]();
  }

  #fail(error: unknown): void {
    // Once the store is known to be damaged, that it takes no writes is no news.
    if (this.#health.phase === 'store_damaged') return;
    this.#hurry.abort();
    this.#health.become('storage_failed');
    this.#failed.reject(error);
  }

  #app(): App {
    return appOf({
      ...this.#parts,
      role: this.#role,
      backup: this.#backup,
      status: () => this.status(),
      readiness: () => this.#health.readiness(),
      liveness: () => this.#health.liveness(),
    });
  }

  #statusParts(): StatusParts {
    const notAfter = this.#listeners?.certificateEnd() ?? null;
    const lost = this.#listeners?.lost() ?? [];
    const listeners = { ...this.addresses, lost, tls: notAfter === null ? null : { notAfter } };
    const { storage } = this.#health;
    return { ...this.#parts, listeners, role: this.#role, startedAt: this.#startedAt, storage };
  }
}
