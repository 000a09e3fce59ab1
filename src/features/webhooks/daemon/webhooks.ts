import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import { version } from '../../../config/version.ts';
import type { Awaitable } from '../../../service/tables.ts';
import type { WebhookSender } from '../service/ports.ts';
import { Wake } from '../../../sync/waiting.ts';
import type { Sender, SenderParts } from '../sender.ts';
import { logOf } from '../../../daemon/log.ts';
import type { OpenedStore } from '../../../daemon/store/opened-store.ts';
import { systemRandom } from '../../../daemon/system/machine.ts';
import { trustSystemAnd } from '../../../daemon/system/trust.ts';

/** How often a process without endpoints looks for one that another node has added, in ms. */
const idleMs = 30_000;

/** Sends events, and loads what sends them when there is an endpoint: most processes have none. */
export type Webhooks = WebhookSender & {
  /** Delivers until the signal aborts, then until the attempts under way have ended. */
  run(signal: AbortSignal): Promise<void>;
};

export function lazyWebhooks(store: OpenedStore): Webhooks {
  const { clock, reader } = store;
  const idle = new Wake(clock);
  let sender: Promise<Sender> | null = null;
  const load = (): Promise<Sender> => (sender ??= loadSender(store));
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

async function loadSender(store: OpenedStore): Promise<Sender> {
  const { Sender: LoadedSender } = await import('../sender.ts');
  const { current, log, metrics, local } = store;
  const parts: SenderParts = {
    ...store,
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
    count: (result) => metrics.countWebhook(result),
  };
  return new LoadedSender(parts);
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.map(({ address }) => address),
  );
}
