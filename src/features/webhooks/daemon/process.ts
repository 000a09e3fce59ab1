import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import { version } from '../../../config/version.ts';
import type { ProcessParts } from '../../../daemon/compose.ts';
import type { FeatureProcess } from '../../../daemon/feature-process.ts';
import { logOf } from '../../../daemon/log.ts';
import { done } from '../../../domain/problem/problem.ts';
import { StorageError } from '../../../service/ports.ts';
import type { Status, StoreEventStatus } from '../../../service/status.ts';
import type { Awaitable } from '../../../service/tables.ts';
import { Wake } from '../../../sync/waiting.ts';
import { eventsKeptMs } from '../domain/webhook.ts';
import type { EventSender, SenderParts } from '../sender.ts';
import type { WebhookSender } from '../service/endpoint.ts';
import type { StoreEvents } from '../service/store-event.ts';
import { webhookMetrics, type WebhookMetrics } from './metrics.ts';
import { LazyStoreEvents } from './store-events.ts';
import type { OpenedStore } from '../../../daemon/store/opened-store.ts';
import { systemRandom } from '../../../daemon/system/machine.ts';
import { trustSystemAnd } from '../../../daemon/system/trust.ts';

/** How often a process without endpoints looks for one that another node has added, in ms. */
const idleMs = 30_000;

declare module '../../../http/app.ts' {
  interface AuthorityParts {
    /** Sends events to webhook endpoints. */
    readonly webhooks: WebhookSender;
  }
  interface AgentParts {
    readonly storeEvents: StoreEvents;
  }
}

/** Endpoints on an authority and an agent, and events of stores on an agent. */
export function startWebhooks(parts: ProcessParts): FeatureProcess {
  const { current, local, reader, writer, role } = parts;
  const { configuration } = current;
  const metrics = webhookMetrics(parts.metrics, configuration.role, Object.keys(configuration.webhooks.in));
  const sender = configuration.role === 'holder' ? null : lazySender(parts, metrics);
  const storeEvents =
    role.agent === null || local === null
      ? null
      : new LazyStoreEvents({ ...parts, ...role.agent, ...local, count: metrics.countReceived });
  return {
    app: { webhooks: sender, storeEvents },
    run: async (signal) => await Promise.all([sender?.run(signal), storeEvents?.run(signal)]),
    status: async () => ({
      storeEvents: storeEventStatus(storeEvents),
      webhooks: await endpointStatus(parts),
    }),
    prune: async ({ verifiedNow, limit }) =>
      // Most processes store no event: they need not load the use case.
      (await reader.webhooks.lastNumber()) === 0
        ? done({ removed: 0 })
        : await writer.write('pruneEvents', { before: verifiedNow - eventsKeptMs, limit }),
  };
}

/** Null without a configured store. */
function storeEventStatus(storeEvents: StoreEvents | null): StoreEventStatus | null {
  const status = storeEvents?.status() ?? null;
  return status === null || status.senders.length === 0 ? null : status;
}

/** The endpoints that get events. */
async function endpointStatus({ reader }: ProcessParts): Promise<Status['webhooks']> {
  try {
    if (!(await reader.webhooks.isUsed())) return null;
    const { webhookStatus } = await import('../service/endpoint.ts');
    return await webhookStatus(reader);
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    return null;
  }
}

/** Sends events. */
type LazySender = WebhookSender & {
  /** Delivers until the signal aborts, then until the attempts under way have ended. */
  run(signal: AbortSignal): Promise<void>;
};

/** Loads what sends events when there is an endpoint: most processes have none. */
function lazySender(store: OpenedStore, metrics: WebhookMetrics): LazySender {
  const { clock, reader } = store;
  const idle = new Wake(clock);
  let sender: Promise<EventSender> | null = null;
  const load = (): Promise<EventSender> => (sender ??= loadSender(store, metrics));
  return {
    check: async (url) => await (await load()).check(url),
    test: async (endpoint) => await (await load()).test(endpoint),
    replay: async (endpoint, event) => await (await load()).replay(endpoint, event),
    wake() {
      idle.up();
      void sender?.then((loaded) => loaded.wake());
    },
    async run(signal) {
      while (!signal.aborted && !(await isUsed(() => reader.webhooks.isUsed()))) {
        await idle.wait(idleMs, signal);
      }
      if (!signal.aborted) await (await load()).run(signal);
    },
  };
}

/** False while the database is unavailable. */
async function isUsed(read: () => Awaitable<boolean>): Promise<boolean> {
  try {
    return await read();
  } catch {
    return false;
  }
}

async function loadSender(store: OpenedStore, metrics: WebhookMetrics): Promise<EventSender> {
  const { EventSender: LoadedEventSender } = await import('../sender.ts');
  const { current, log, local } = store;
  const parts: SenderParts = {
    ...store,
    expiringMs: () => current.configuration.webhooks.out.licenseExpiringMs,
    random: systemRandom,
    log: logOf(log, 'webhook'),
    address: {
      allow: () => current.configuration.webhooks.out.allow,
      own: ownAddresses,
      resolve: async (host) => await lookup(host, { all: true }),
    },
    trust: trustSystemAnd(),
    version,
    isAlone: local !== null,
    count: metrics.countAttempt,
  };
  return new LoadedEventSender(parts);
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.map(({ address }) => address),
  );
}
