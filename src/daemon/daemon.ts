import { type Configuration, changedKeys } from '../config/configuration.ts';
import type { ConfigurationSource } from '../config/load.ts';
import {
  maxCountedMissing,
  type Status,
  type StorageState,
  type FreshnessCounts,
  type UpstreamStatus,
  type FollowStatus,
} from '../service/status.ts';
import { persist } from '../sync/waiting.ts';
import type { FeatureProcess } from './feature-process.ts';
import type { Addresses, Listeners } from './listeners.ts';
import { type Reloaded, reloadedConfiguration, type LiveConfiguration } from './live-configuration.ts';
import type { Role } from './role/role.ts';
import { countLicenses, type OpenedStore } from './store/opened-store.ts';
import type { Readiness } from '../http/app.ts';
import { version } from '../config/version.ts';
import type { Reader } from '../service/tables.ts';
import { formatProxy } from '../upstream/proxy.ts';
import { pause, type PersistentClock } from './system/clock.ts';
import { proxyTo } from './upstream-settings.ts';
import { isLatchkey, isUpstreamKnown } from '../service/outbox/upstream/identity.ts';
import { lastSuccessAt } from '../service/outbox/upstream/waits.ts';

/** How long a stop waits for requests in flight, in ms. */
const drainMs = 10_000;
/** How much longer it waits for requests that waited for the upstream and get the known state, in ms. */
const lastResponseMs = 1_000;

/** The phase of a process, including its known failures. */
type Phase = Exclude<Readiness['state'], 'storage_unavailable'>;

const readinessByPhase: Readonly<Record<Phase, Readiness>> = {
  starting: { state: 'starting', reasons: ['starting'] },
  ready: { state: 'ready', reasons: [] },
  leaving: { state: 'leaving', reasons: ['draining'] },
  draining: { state: 'draining', reasons: ['draining'] },
  store_damaged: { state: 'store_damaged', reasons: ['store_damaged'] },
  storage_failed: { state: 'storage_failed', reasons: ['storage_failed'] },
};

/** What a daemon controls while it runs. */
type DaemonParts = OpenedStore & {
  role: Role;
  processes: readonly FeatureProcess[];
  /** Aborted at the end of a stop: ends the requests in flight. */
  lifetime: AbortController;
};

/** Starts the loops of a daemon, which end with the signal. */
type Loops = (signal: AbortSignal) => Promise<unknown>[];

/** A running process: reload, status, failure and stop. `compose` builds it. */
export class Daemon {
  readonly #parts: DaemonParts;
  readonly #startedAt: number;
  /** Ends the loops, which first finish what is in flight. */
  readonly #loops = new AbortController();
  /** Ends the wait of `listen.drain_delay`. */
  readonly #drainDelayEnd = new AbortController();
  #phase: Phase = 'starting';
  #stopping: Promise<void> | null = null;
  #listeners: Listeners | null = null;
  #resources: AsyncDisposable | null = null;
  #running: Promise<unknown> = Promise.resolve();
  readonly #failed = Promise.withResolvers<never>();

  constructor(parts: DaemonParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.monotonic();
    this.#failed.promise.catch(() => undefined);
  }

  /** Runs the loops. `stop` closes the listeners, ends the loops, and then disposes of `resources`. */
  run(listeners: Listeners, loops: Loops, resources: AsyncDisposable): void {
    this.#listeners = listeners;
    this.#resources = resources;
    this.#running = Promise.all(loops(this.#loops.signal));
    for (const end of [this.#running, this.#parts.writer.lost])
      end.catch((error: unknown) => this.#fail(error));
    this.#phase = 'ready';
  }

  get addresses(): Addresses {
    return this.#listeners?.addresses ?? { tcp: null, otherTcp: [], socket: null, sockets: [], public: null };
  }

  /** Rejects when the store fails, or another part that must run; pending otherwise. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  /** Whether this process accepts requests. Also ready if only reads work: another node has the same database. */
  readiness(): Readiness {
    if (this.#phase !== 'ready') return readinessByPhase[this.#phase];
    const { storage } = this.#parts.writer;
    switch (storage) {
      case 'ok':
        return readinessByPhase.ready;
      case 'full':
      case 'read_only':
        return { state: 'ready', reasons: [`storage_${storage}`] };
      case 'unavailable':
      case 'slow':
      case 'refused':
        return { state: 'storage_unavailable', reasons: [`storage_${storage}`] };
      default:
        return storage satisfies never;
    }
  }

  /** Why this process must be restarted; empty: it works. */
  liveness(): readonly string[] {
    const { writer, local } = this.#parts;
    if (this.#phase === 'storage_failed') return ['storage_failed'];
    if (writer.isStuck) return ['store_stuck'];
    try {
      local?.reader.settings.get('instance');
      return [];
    } catch {
      return ['store_unreadable'];
    }
  }

  async status(): Promise<Status> {
    const notAfter = this.#listeners?.certificateEnd() ?? null;
    const lost = this.#listeners?.lost() ?? [];
    const listeners = { ...this.addresses, lost, tls: notAfter === null ? null : { notAfter } };
    const storage = this.#phase === 'store_damaged' ? 'damaged' : this.#parts.writer.storage;
    return await statusOf(this.#parts, { listeners, startedAt: this.#startedAt, storage });
  }

  /** Checks that the sockets and `listen.json` are in their places. */
  async checkListeners(): Promise<void> {
    await this.#listeners?.check();
  }

  /** Applies another configuration: secrets, products, rates, freshness. */
  reload(requested: Configuration, source: ConfigurationSource | null = null): Reloaded {
    const { current, changes, role } = this.#parts;
    const { configuration: previous } = current;
    const configuration = reloadedConfiguration(previous, requested);
    current.replace(configuration);
    current.source = source;
    changes.announce(['anything']);
    // A file of the same name may have another certificate.
    const isRenewed = this.#listeners?.renewCertificate(configuration.listen.tls) ?? false;
    void this.#listeners?.check();
    const renewed = isRenewed ? ['listen.tls.cert_file'] : [];
    role.upstream?.retryCredentials();
    role.upstream?.probeNow();
    this.#bindAgain();
    return {
      changed: [...new Set([...changedKeys(previous, configuration), ...renewed])],
      restart: changedKeys(configuration, requested),
    };
  }

  /** Records the configured upstream and products in the store; on a full disk, once there is room. */
  #bindAgain(): void {
    const { signal } = this.#loops;
    persist(this.#parts.clock, signal, () => this.#parts.role.bind()).catch((error: unknown) => {
      if (!signal.aborted) this.#fail(error);
    });
  }

  /** Ends writing and sending, because the store is damaged. Returns false if the store was out of use already. */
  stopWriting(damage: string): boolean {
    if (this.#phase !== 'ready') return false;
    this.#phase = 'store_damaged';
    this.#parts.writer.disable(new Error(damage));
    this.#loops.abort();
    return true;
  }

  /** Answers requests for `listen.drain_delay`, then only requests in flight, and then closes everything. */
  async stop(): Promise<void> {
    this.#stopping ??= this.#waitForDrainDelay().then(() => this.#drain());
    await this.#stopping;
  }

  /** Ends the wait of `listen.drain_delay`. Returns false if there is no wait. */
  skipDrainDelay(): boolean {
    if (this.#phase !== 'leaving') return false;
    this.#drainDelayEnd.abort();
    return true;
  }

  async #waitForDrainDelay(): Promise<void> {
    const { current, clock } = this.#parts;
    const { drainDelayMs } = current.configuration.listen;
    if (this.#phase !== 'ready' || drainDelayMs === 0) return;
    this.#phase = 'leaving';
    await pause(clock, drainDelayMs, this.#drainDelayEnd.signal);
  }

  async #drain(): Promise<void> {
    this.#phase = 'draining';
    for (const each of this.#parts.processes) each.stopWaiting?.();
    const cut = setTimeout(() => {
      this.#parts.lifetime.abort();
    }, drainMs);
    await this.#listeners?.answered(drainMs + lastResponseMs);
    await this.#listeners?.[Symbol.asyncDispose]();
    this.#loops.abort();
    await this.#running.catch(() => undefined);
    this.#parts.lifetime.abort();
    clearTimeout(cut);
    await this.#resources?.[Symbol.asyncDispose]();
  }

  #fail(error: unknown): void {
    // A damaged store refuses writes: not a new failure.
    if (this.#phase === 'store_damaged') return;
    this.#drainDelayEnd.abort();
    this.#phase = 'storage_failed';
    this.#failed.reject(error);
  }
}

type ProcessState = { listeners: Status['listeners']; startedAt: number; storage: StorageState };

/** The status of this process now. */
async function statusOf(parts: DaemonParts, state: ProcessState): Promise<Status> {
  const { instance, current, clock, metrics } = parts;
  const agent = agentOf(parts);
  const ofFeatures = await Promise.all(parts.processes.map(async ({ status }) => await status?.()));
  return {
    role: current.configuration.role,
    version,
    instance,
    uptimeMs: clock.monotonic() - state.startedAt,
    listeners: state.listeners,
    upstream: agent === null ? null : upstreamStatus(agent, current),
    outbox: agent === null ? null : outboxStatus(agent, clock),
    preload: agent === null ? null : agent.reader.preload.progress(),
    missing: agent === null ? null : missingStatus(agent, clock),
    storeEvents: null,
    storage: state.storage,
    leases: null,
    issuer: null,
    records: agent === null ? await licenseCounts(parts) : recordCounts(agent, parts),
    clock: { now: clock.now(), ...clock.status() },
    webhooks: null,
    agents: null,
    totals: metrics.totals(),
    ...(Object.assign({}, ...ofFeatures) as Partial<Status>),
  };
}

/** Counts the licenses of an authority. */
async function licenseCounts({ shared, reader }: OpenedStore): Promise<FreshnessCounts | null> {
  return shared === null ? await countLicenses(reader) : await shared.licenses();
}

/** The parts of an agent. */
type Agent = { upstream: NonNullable<Role['upstream']>; reader: Reader };

function agentOf({ role: { upstream }, local }: DaemonParts): Agent | null {
  return upstream === null || local === null ? null : { upstream, reader: local.reader };
}

function outboxStatus({ reader: { operations } }: Agent, clock: PersistentClock): Status['outbox'] {
  const oldestAt = operations.oldestAt();
  return {
    depth: operations.depth(),
    held: operations.heldCount(),
    oldestAgeMs: oldestAt === null ? null : Math.max(0, clock.now() - oldestAt),
  };
}

/** The last success may be from before this start. */
function upstreamStatus({ upstream, reader }: Agent, current: LiveConfiguration): UpstreamStatus {
  const { upstream: settings, products } = current;
  const status = upstream.status();
  const proxy = proxyTo(settings);
  return {
    ...status,
    protocol: isUpstreamKnown(reader) ? (isLatchkey(reader) ? 'latchkey' : 'plain') : 'unknown',
    follows: isLatchkey(reader)
      ? products.list.configured.map(({ id, productKey }) => followStatus(reader, id, productKey))
      : [],
    lastSuccessAt: status.lastSuccessAt ?? lastSuccessAt(reader),
    pausedProducts: status.pausedProducts.map((id) => products.keyOf(id)),
    rate: current.sync().rate,
    proxy: proxy === null ? null : formatProxy(proxy),
  };
}

function followStatus(reader: Reader, id: string, productKey: string): FollowStatus {
  const followed = reader.snapshots.followedCount(id);
  // 0: a change was recorded, but others are still to come.
  return { productKey, followed, confirmedAt: reader.follows.get(id)?.confirmedAt || null };
}

function missingStatus({ reader }: Agent, clock: PersistentClock): Status['missing'] {
  const { count, since } = reader.snapshots.missing(maxCountedMissing);
  return since === null ? null : { count, since: clock.now() - clock.monotonic() + since };
}

function recordCounts({ reader }: Agent, { clock, current }: DaemonParts): FreshnessCounts {
  const { freshMs, staleMs, graceMs } = current.configuration.freshness;
  const now = clock.now();
  return reader.snapshots.counts({
    fresh: now - freshMs,
    stale: now - staleMs,
    grace: now - graceMs,
  });
}
