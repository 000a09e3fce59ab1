import { setImmediate } from 'node:timers/promises';
import { readCertificates } from '../../config/file/certificates.ts';
import { readNamedFile } from '../../config/file/named-file.ts';
import { agentCredentials } from '../../service/access/credential.ts';
import { agentCheckoutService } from '../../service/agent/checkout.ts';
import { agentCouponService } from '../../service/agent/coupon.ts';
import { agentLicenseService } from '../../service/agent/license.ts';
import { lastProductName } from '../../service/agent/products.ts';
import type { LocalLists, Reader } from '../../service/tables.ts';
import { isPaused, retryAfterUntil } from '../../service/outbox/upstream/waits.ts';
import { notSent } from '../../domain/outbox/outcome.ts';
import type { Log, SyncControl, SyncUpstream, Upstream } from '../../service/ports.ts';
import type { Writer } from '../../service/writer.ts';
import { Activations, inTurn } from '../../stores/activations.ts';
import { loadStore, type Store, type StoreClient, type StoreRouteParts } from '../../stores/store.ts';
import { keyLister } from '../../stores/key-list.ts';
import { KeyedMutex } from '../../sync/waiting.ts';
import { latchkeyConcurrency, Sync } from '../../sync/sync.ts';
import { upstreamClient, type UpstreamClientSettings } from '../../upstream/client.ts';
import { networkTransport } from '../../upstream/exchange.ts';
import { formatProxy, ignoredExceptions, type ProxyChoice } from '../../upstream/proxy.ts';
import { recordTime } from '../maintenance.ts';
import { isSameDigest, systemRandom } from '../system/machine.ts';
import { connectionSettings, speechSettings, storeSettings } from '../upstream-settings.ts';
import type { Role, RoleParts } from './role.ts';

/** Builds an agent: the client of its upstream, the sync loops, and the services for callers. */
export async function agentRole(parts: RoleParts & { reader: Reader; lists: LocalLists }): Promise<Role> {
  const { current, reader, clock, tokenUses: uses } = parts;
  const store = await loadStore(current.upstream.store ?? current.upstream.dialect);
  const connected = connect(parts, store);
  const { upstream } = connected;
  const sync = openSync(parts, connected);
  const isConfigured = (): boolean => current.upstream.apiKey !== null;
  return {
    licenseService: agentLicenseService({
      ...parts,
      fetcher: sync.fetcher,
      deliveries: sync.delivery,
      takes: store.takes,
      productIds: current.productIds,
      settings: current.agentSettings,
    }),
    couponService: agentCouponService({
      ...parts,
      fetcher: sync.coupons,
      deliveries: sync.delivery,
      isConfigured,
      settings: current.agentSettings,
    }),
    checkout: agentCheckoutService({
      ...parts,
      fetcher: sync.coupons,
      deliveries: sync.delivery,
      isConfigured,
      settings: current.agentSettings,
    }),
    credentials: agentCredentials(
      { reader, isSame: isSameDigest, verifiedNow: () => clock.verified(), uses },
      () => current.credentials(),
    ),
    productName: (productId) => lastProductName(reader, productId) ?? current.productName(productId),
    upstream: sync.limiter,
    sync: syncControl(parts, sync, connected.client),
    agent: partsOfAgent(parts, sync, { store, client: connected.client }),
    async bind() {
      await bind(parts);
      sync.limiter.waitUntil(retryAfterUntil(reader));
      // The changes of a product that is configured again can be sent.
      sync.delivery.wake();
      sync.wakePreload();
    },
    async run(signal) {
      await using _ = upstream;
      // The daemon writes its line `ready` first: the first request loads undici, which takes 30 ms.
      await setImmediate();
      // Before the first response, the state of the upstream is unknown.
      sync.limiter.probeNow();
      await sync.run(signal);
    },
  };
}

function partsOfAgent(
  parts: RoleParts & { reader: Reader },
  sync: Sync,
  { store, client }: { store: Store; client: StoreClient },
): NonNullable<Role['agent']> {
  const { fetcher, delivery, limiter } = sync;
  const activations = new Activations({
    ...parts,
    client,
    limiter,
    fetcher,
    mutex: new KeyedMutex(),
    inDoubtMs: () => parts.current.upstream.timeoutMs + parts.current.configuration.sync.reconcileAfterMs,
  });
  const routeParts: StoreRouteParts = {
    ...storeSettings(parts.current),
    client,
    activate: (activation, caller) => activations.activate(activation, caller),
    refresh: (productId, licenseKey) => fetcher.refresh(productId, licenseKey),
    async verifyWith(productId, asked, caller) {
      const { lifetime } = parts;
      const about = { productId, licenseKey: asked.licenseKey };
      const outcome = await inTurn(
        { ...parts, limiter },
        about,
        AbortSignal.any([caller, lifetime]),
        async () => {
          const sent = client.verifyWith?.(productId, asked, lifetime);
          return (await sent) ?? notSent('rejected', 'this store has no such request');
        },
      );
      if (outcome.outcome === 'applied') await fetcher.learnLicense(productId, outcome.value, outcome.shows);
      return outcome;
    },
    learnLicense: (productId, license) => fetcher.learnLicense(productId, license),
    learn: (...said) => fetcher.learn(...said),
  };
  return {
    fetcher,
    deliveries: delivery,
    newKeys: () => sync.newKeys(),
    routes: store.routes?.(routeParts) ?? [],
  };
}

function openSync(parts: RoleParts & { reader: Reader }, connected: Connected): Sync {
  const sync = new Sync({
    ...parts,
    ...connected,
    fraction: () => systemRandom.fraction(),
    mutex: new KeyedMutex(),
    settings: () => parts.current.sync(),
    onState: (state) => recordState(parts, state),
  });
  if (isPaused(parts.reader)) sync.limiter.pause();
  return sync;
}

/**
 * A change of the state is an event for other systems, unless the disk is full. The state is also recorded while no system
 * gets events, so that the first event is about a change.
 */
function recordState({ writer }: RoleParts, state: 'up' | 'down'): void {
  writer.write('recordUpstreamState', { state }).catch(() => undefined);
}

/** Records the configured upstream and products in the store, and logs the consequences for stored changes. */
async function bind({ current, writer, log }: RoleParts): Promise<void> {
  const { baseUrl } = current.upstream;
  const bound = await writer.write('bindUpstream', { baseUrl, products: current.products.list });
  if (!bound.ok) throw new Error(bound.problem.detail);
  const { heldOperations, renamed, removed } = bound.value;
  if (heldOperations > 0) {
    const hint = 'list them with: latchkey outbox list; then retry, drop or confirm each';
    log.error(
      { operations: heldOperations, hint },
      'changes may have been applied at the previously configured upstream: they wait for your decision',
    );
  }
  for (const { from, to } of renamed) {
    log.warn(
      { product: to, before: from },
      'a product has a new key: its license keys and changes were moved to it',
    );
  }
  for (const { productKey, operations } of removed) {
    const what = 'a product is no longer configured';
    if (operations === 0) log.info({ product: productKey }, `${what}: it has no waiting changes`);
    else log.warn({ product: productKey, operations }, `${what}: its changes wait`);
  }
}

type Connected = { upstream: Upstream & AsyncDisposable; syncUpstream: SyncUpstream; client: StoreClient };

function connect({ instance, current, clock, writer, log }: RoleParts, store: Store): Connected {
  const { upstream } = current;
  // One request of each product waits at a Latchkey for changes: it must not take the place of the others.
  const maxConnections = (): number =>
    current.configuration.sync.concurrency * latchkeyConcurrency + 2 + current.products.configured.length;
  const read = upstream.caFile === null ? null : readCertificates(upstream.caFile, readNamedFile);
  if (read?.ok === false) throw new Error(`upstream.ca_file: ${read.text}`);
  const ca = read?.pem ?? null;
  const connections = connectionSettings(upstream, current.configuration.listen, { ca, maxConnections });
  const proxy = connections.proxy();
  if (proxy !== null) logProxy(proxy, log);
  const settings: UpstreamClientSettings = {
    ...connections,
    ...speechSettings(upstream, upstream.dialect, store.received),
    self: instance,
    apiKey: () => current.upstream.apiKey?.reveal() ?? null,
    secretOf: (productId) => current.secretOf(productId),
    onOutcome: ({ path: route, ...request }) => {
      log.debug({ route, ...request }, 'request to the upstream');
    },
    onDate: (date) => {
      // If this write fails, maintenance records the time within a minute.
      if (clock.hear(date)) recordTime({ clock, writer }).catch(() => undefined);
    },
  };
  const client =
    store.connect === undefined
      ? upstreamClient(settings, clock)
      : store.connect(networkTransport(settings), { ...settings, ...storeSettings(current) }, clock);
  return { upstream: client, syncUpstream: client, client };
}

function logProxy(choice: ProxyChoice, log: Log): void {
  const proxy = formatProxy(choice);
  if (proxy !== null) log.info({ proxy, from: choice.source }, 'connections to the upstream use a proxy');
  else log.error({ from: choice.source }, 'the proxy to the upstream is not a URL: nothing can be sent');
  const ignored = ignoredExceptions(process.env);
  if (ignored !== null) log.warn(ignored, 'entries of NO_PROXY are not understood and match no host');
}

/**
 * Pauses, resumes and triggers synchronization: first in the store, then in the running loops. `client`: that of a store with
 * an API of its own.
 */
export function syncControl(
  { reader, writer }: { reader: Reader; writer: Writer },
  sync: Sync,
  client: Pick<StoreClient, 'listKeys'> = {},
): SyncControl {
  const { fetcher, limiter, delivery } = sync;
  /** Reads the store, because a repeated request under the same idempotency key changes nothing. */
  const isPausedNow = (requested: boolean): boolean => {
    try {
      return isPaused(reader);
    } catch {
      return requested;
    }
  };
  const setPaused: (value: boolean) => SyncControl['pause'] = (value) => async (writeOptions) => {
    const done = await writer.write('pauseSync', { isPaused: value }, writeOptions);
    if (isPausedNow(value)) limiter.pause();
    else limiter.resume();
    sync.wakePreload();
    return done;
  };
  return {
    pause: setPaused(true),
    resume: setPaused(false),
    async now(writeOptions) {
      const done = await writer.write('retryNow', {}, writeOptions);
      limiter.closeBreaker();
      fetcher.forgetAllMissing();
      sync.wakePreload();
      return done;
    },
    wake: () => delivery.wake(),
    async preload(command, writeOptions) {
      const queued = await writer.write('queuePreload', command, writeOptions);
      sync.wakePreload();
      return queued;
    },
    ...(client.listKeys !== undefined && { listKeys: keyLister(limiter, client.listKeys.bind(client)) }),
  };
}
