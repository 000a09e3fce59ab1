import { promises as files } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import type { ConfigurationSource } from '../config/load.ts';
import { version } from '../config/version.ts';
import { AnnouncedCredentialCache, rateLimiters } from '../http/entry/rate-limits.ts';
import { TokenUses } from '../service/access/credential.ts';
import { Daemon } from './daemon.ts';
import type { FeatureProcess } from './feature-process.ts';
import { features } from '../features.ts';
import { openListeners } from './listeners.ts';
import { epochOf, type OpenedStore } from './store/opened-store.ts';
import { logOf } from './log.ts';
import { type MaintenanceParts, runMaintenance } from './maintenance.ts';
import { loadRole, type Role, type RoleParts } from './role/role.ts';
import { backupsOf } from './store/backups.ts';
import { DamageWatch } from './store/damage-watch.ts';
import { indexLicenses } from './store/license-search.ts';
import { systemRandom, sha256 } from './system/machine.ts';
import { defaultAccountId } from '../domain/access/principal.ts';
import type { App, CoreApp, ProcessControl } from '../http/app.ts';
import { routesOf } from '../http/routes/all.ts';
import { longReadOn } from './long-read.ts';
import type { Log } from '../service/ports.ts';
import { loadStore } from '../stores/store.ts';
import { explainOperation } from '../service/outbox/decision.ts';
import { replaceSecretFile } from './system/secret-files.ts';
import { proofOf } from '../wire/proof.ts';

export type ComposeOptions = {
  /** Changes a server before it listens, so that a sandbox can misbehave. */
  prepare?: ((server: FastifyInstance) => void) | undefined;
  /** Ends and reloads the process; absent in a program that embeds the daemon. */
  control?: ProcessControl | null;
  /** Where the configuration was read from; absent in a program that embeds the daemon. */
  source?: ConfigurationSource | undefined;
};

export type ProcessParts = OpenedStore & { role: Role; daemon: Daemon };

declare module '../feature.ts' {
  interface Feature {
    /** What it has in a process of any role. */
    readonly process?: (parts: ProcessParts) => Promise<FeatureProcess>;
  }
}

/**
 * Builds a daemon on an opened store, listens, and starts the loops: who gets what, from top to bottom. The daemon
 * takes over `resources`, unless this function throws.
 */
export async function compose(
  store: OpenedStore,
  { prepare, control = null, source }: ComposeOptions,
  resources: AsyncDisposableStack,
): Promise<Daemon> {
  const { current, clock, local, shared, metrics, log } = store;
  current.source = source ?? null;
  const { configuration } = current;
  const tokenUses = new TokenUses();
  const lifetime = new AbortController();
  const role = await buildRole(store, {
    ...store,
    log: logOf(log, 'sync'),
    meter: metrics,
    tokenUses,
    lifetime: lifetime.signal,
  });
  const processes: FeatureProcess[] = [];
  const daemon = new Daemon({ ...store, role, processes, lifetime });
  processes.push(...(await startFeatures({ ...store, role, daemon })));
  const damageWatch =
    local === null
      ? null
      : new DamageWatch(local.databasePath, logOf(log, 'store'), (damage) => daemon.stopWriting(damage));
  const { sent: dialect } = await loadStore(configuration.listen.dialect);
  const coreApp = appOf(store, role, daemon, {
    dialect,
    backup:
      shared === null
        ? backupsOf(local.databasePath, configuration.stateDir, clock, lifetime.signal)
        : shared.backup,
    // Where `prepare` changes the server, each request must pass the whole server. Other nodes change licenses too.
    cachesResponses: local !== null && prepare === undefined,
    control,
    prove: (nonce, address) => proofOf(store.adminToken, { nonce, instance: store.instance, address }),
  });
  const app = withParts(coreApp, processes);
  const maintenance = maintenanceParts(store, { role, processes, daemon, damageWatch, tokenUses });
  await role.bind();
  const routes = [...(role.agent?.routes ?? []), ...(await routesOf(app.dialect))];
  const pages = processes.flatMap(({ page }) => page ?? []);
  const listeners = await openListeners(configuration, { ...app, routes, pages }, (server) => {
    metrics.watch(server);
    prepare?.(server);
  });
  const isIndexing = local !== null && configuration.role === 'authority';
  const owned = resources.move();
  daemon.run(listeners, loopsOf({ role, processes, maintenance, isIndexing }), owned);
  logOf(log, 'daemon').info({ role: configuration.role, version, ...listeners.addresses }, 'ready');
  // The check takes CPU time, so it starts after the daemon is ready.
  if (damageWatch !== null) owned.use(damageWatch.checkStore());
  return daemon;
}

/** Starts what features and the role have in a process. */
async function startFeatures(parts: ProcessParts): Promise<readonly FeatureProcess[]> {
  const started = await Promise.all(features.map(async ({ process: start }) => await start?.(parts)));
  return [parts.role.process, ...started].filter((each) => each !== undefined);
}

/** Adds the parts of features to an app. */
function withParts(app: CoreApp, processes: readonly FeatureProcess[]): App {
  // The compiler cannot see that the features of the list have all parts that features add to the type.
  return Object.assign({}, app, ...processes.map(({ app: parts }) => parts)) as App;
}

type Maintained = {
  role: Role;
  processes: readonly FeatureProcess[];
  daemon: Daemon;
  damageWatch: DamageWatch | null;
  tokenUses: TokenUses;
};

function maintenanceParts(
  { writer, clock, current }: OpenedStore,
  { role, processes, daemon, damageWatch, tokenUses }: Maintained,
): MaintenanceParts {
  return {
    writer,
    clock,
    random: systemRandom,
    role: current.configuration.role,
    syncKeepMs: () => current.configuration.sync.keepMs,
    tokenUses,
    historyKeepMs: () => current.configuration.history.keepMs,
    prunes: processes.flatMap(({ prune }) => prune ?? []),
    lastSuccessAt: () => role.upstream?.status().lastSuccessAt ?? null,
    onSleep: () => {
      role.upstream?.probeNow();
      for (const each of processes) each.onSleep?.();
    },
    checkStoreFile: () => damageWatch?.checkFile(),
    checkListeners: () => daemon.checkListeners(),
  };
}

type LoopParts = {
  role: Role;
  processes: readonly FeatureProcess[];
  maintenance: MaintenanceParts;
  /** Whether the licenses are in a local store, which does not maintain the index of searches by itself. */
  isIndexing: boolean;
};

function loopsOf({ role, processes, maintenance, isIndexing }: LoopParts) {
  return (signal: AbortSignal): Promise<unknown>[] => [
    role.run(signal),
    ...processes.flatMap(({ run }) => run?.(signal) ?? []),
    runMaintenance(maintenance, signal),
    ...(isIndexing ? [indexLicenses(maintenance, signal)] : []),
  ];
}

async function buildRole({ current, local, shared }: OpenedStore, parts: RoleParts): Promise<Role> {
  if (shared !== null) return shared.role(parts);
  const build = await loadRole(current.configuration.role);
  return await build({ ...parts, ...local });
}

/** What `compose` builds for the routes. */
type OfProcess = Pick<App, 'dialect' | 'backup' | 'cachesResponses' | 'control' | 'prove'>;

/** Builds the dependencies of the routes. */
function appOf(
  store: OpenedStore,
  { licenseService, couponService, checkout, credentials, productName, sync, upstream }: Role,
  daemon: Daemon,
  ofProcess: OfProcess,
): CoreApp {
  const { instance, current, reader, local, shared, writer, clock, log, changes } = store;
  const { role, stateDir, upstream: configured } = current.configuration;
  const credentialCache = shared?.credentialCache ?? new AnnouncedCredentialCache(changes);
  return {
    role,
    foreignStore: configured?.store ?? null,
    version,
    instance,
    epoch: epochOf(store),
    licenseService,
    couponService,
    checkout,
    changes,
    credentials: credentialCache.cached(credentials),
    rates: rateLimiters(
      () => current.configuration.limits,
      () => clock.monotonic(),
    ),
    products: role === 'agent' ? current.products : null,
    productName,
    reader,
    ...longReadsOf(store),
    explain: (operation) => {
      if (local === null) throw new Error('an authority has no operations');
      const blocker = upstream?.blocker(operation.productId) ?? null;
      return explainOperation(local.reader, operation, { blocker, monotonic: clock.monotonic() });
    },
    writer,
    sync,
    licenseCredential: null,
    ...ofProcess,
    digest: sha256,
    log: logOf(log, 'http'),
    inFlight: new Set(),
    now: () => clock.now(),
    verifiedNow: () => clock.verified(),
    historySince: () => clock.verified() - current.configuration.history.keepMs,
    saveApiKey: saveApiKeyIn(stateDir, logOf(log, 'daemon')),
    status: () => daemon.status(),
    readiness: () => daemon.readiness(),
    liveness: () => daemon.liveness(),
    metrics: appMetrics(store, daemon),
  };
}

/** The metrics of this process, for the routes. */
function appMetrics({ current, metrics }: OpenedStore, daemon: Daemon): App['metrics'] {
  const { stateDir } = current.configuration;
  return {
    isOpen: () => current.configuration.metrics.open,
    expose: async () =>
      await metrics.expose({
        status: await daemon.status(),
        freeBytes: await freeBytesIn(stateDir),
        productKeys: current.products.configured.map(({ productKey }) => productKey),
      }),
    begin: () => metrics.begin(),
    countResponse: (...response) => metrics.countResponse(...response),
    countUnrouted: (status) => metrics.countUnrouted(status),
    countVerify: (response) => metrics.countVerify(response),
    countUse: () => metrics.countUse(),
  };
}

/** Reads that take longer the more is stored: in their own threads, or in the database. */
function longReadsOf({
  reader,
  local,
  current,
  clock,
}: OpenedStore): Pick<App, 'lists' | 'longRead' | 'operations' | 'storedLicenses'> {
  if (local === null)
    return {
      lists: reader,
      longRead: longReadOn(reader),
      operations: null,
      storedLicenses: null,
    };
  const { lists } = local;
  const isAgent = current.configuration.role === 'agent';
  const operations = isAgent ? { ...local.reader.operations, ...lists.operations } : null;
  const stored = {
    ...lists.snapshots,
    get: (licenseKey: string) => local.reader.snapshots.get(licenseKey),
    freshness: () => current.configuration.freshness,
    dateOf: (monotonic: number) => clock.now() - clock.monotonic() + monotonic,
    seatsOf: (productId: string) => current.leaseTermsOf(productId).seats,
  };
  const storedLicenses = isAgent ? stored : null;
  return { lists, longRead: local.longRead, operations, storedLicenses };
}

/** Writes a rotated key of the first account to `api.key`. Only logs an error, because the caller must get the new key. */
function saveApiKeyIn(stateDir: string, log: Log): App['saveApiKey'] {
  return (accountId, apiKey) => {
    if (accountId !== defaultAccountId) return;
    try {
      replaceSecretFile(stateDir, 'apiKey', apiKey);
    } catch (error) {
      const hint =
        'write the new key into api.key yourself, or make api.key writable and rotate the key again';
      log.error({ err: error, hint }, 'the API key was rotated, but api.key still has the previous key');
    }
  };
}

/** Null if the system does not say. */
async function freeBytesIn(directory: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await files.statfs(directory);
    return bavail * bsize;
  } catch {
    return null;
  }
}
