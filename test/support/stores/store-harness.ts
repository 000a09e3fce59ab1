import { join } from 'node:path';
import type { StandIn } from '../../../src/features/sandbox/stores/stand-in.ts';
import { Agent, type Configuration } from '../harness/agent-harness.ts';
import { startFaultProxy, type FaultProxy } from '../network/fault-proxy.ts';
import type { HttpResponse } from '../network/raw-http.ts';
import { startDaemonProcess } from '../process/daemon-process.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../temporary.ts';

/** A stand-in for a store, the network in front of it, and an agent of it. */
export interface StoreHarness<Store extends StandIn = StandIn> extends AsyncDisposable {
  readonly store: Store;
  readonly network: FaultProxy;
  readonly agent: Agent;
  /** The configuration of the agent. */
  readonly file: string;
  /** Kills the agent, and starts another one on its store. */
  restart(changes?: Configuration): Promise<Agent>;
}

/** Starts an agent of a stand-in that is running. `base`: the settings of `upstream` and `products` of every agent. */
export async function startStoreHarness<Store extends StandIn>(
  store: Store,
  base: { upstream: object; products: readonly object[] },
  configuration: Configuration = {},
): Promise<StoreHarness<Store>> {
  await using opened = new AsyncDisposableStack();
  opened.use(store);
  const home: TemporaryDirectory = opened.use(temporaryDirectory());
  const network = opened.use(await startFaultProxy(store.port));
  const configured = (changes: Configuration): object => ({
    listen: { tcp: '127.0.0.1:0', ...changes.listen },
    upstream: {
      base_url: network.url,
      timeout: '10s',
      probe: '200ms',
      ...base.upstream,
      ...changes.upstream,
    },
    products: changes.products ?? base.products,
    freshness: changes.freshness ?? {},
    limits: { misses: 100, ...changes.limits },
    sync: {
      rate: 1000,
      reconcile_after: '350ms',
      backoff: { first: '20ms', max: '200ms' },
      breaker: { failures: 5, open: '200ms' },
      ...changes.sync,
    },
    ...(changes.webhooks !== undefined && { webhooks: changes.webhooks }),
  });
  const start = async (changes: Configuration): Promise<Agent> =>
    new Agent(await startDaemonProcess(home.path, configured(changes)), home.path);
  let agent = await start(configuration);
  opened.defer(async () => await agent.kill());
  const closing = opened.move();
  return {
    store,
    network,
    file: join(home.path, 'config.yaml'),
    get agent() {
      return agent;
    },
    async restart(changes = configuration) {
      await agent.kill();
      agent = await start(changes);
      return agent;
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** What a program gets: the answer; null: the connection was closed. */
export async function answerOf(response: Promise<HttpResponse>): Promise<HttpResponse | null> {
  return await response.catch(() => null);
}
