import { join } from 'node:path';
import {
  GumroadStore,
  type GumroadProduct,
  type GumroadSale,
} from '../../../src/features/sandbox/stores/gumroad.ts';
import { Agent, type Configuration } from '../harness/agent-harness.ts';
import { startFaultProxy, type FaultProxy } from '../network/fault-proxy.ts';
import type { HttpResponse } from '../network/raw-http.ts';
import { startDaemonProcess } from '../process/daemon-process.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../temporary.ts';

export const productId = 'SDGgCnivv6gTTHfVRfUBxQ==';
export const permalink = 'QMGY';
export const accessToken = 'token-of-the-seller';

/** The keys of the sales, in each state that Gumroad knows. */
export const keys = {
  good: '11111111-AAAAAAAA-11111111-AAAAAAAA',
  refunded: '22222222-BBBBBBBB-22222222-BBBBBBBB',
  disabled: '33333333-CCCCCCCC-33333333-CCCCCCCC',
  revoked: '44444444-DDDDDDDD-44444444-DDDDDDDD',
  ended: '55555555-EEEEEEEE-55555555-EEEEEEEE',
  running: '66666666-FFFFFFFF-66666666-FFFFFFFF',
  unseen: '77777777-ABCDEFAB-77777777-ABCDEFAB',
  unknown: '88888888-ABCDEFAB-88888888-ABCDEFAB',
} as const;

export const sales: readonly GumroadSale[] = [
  { licenseKey: keys.good, uses: 3 },
  { licenseKey: keys.refunded, purchase: { refunded: true } },
  { licenseKey: keys.disabled, isDisabled: true },
  { licenseKey: keys.revoked, isRevoked: true },
  { licenseKey: keys.ended, purchase: { subscription_ended_at: '2026-01-31T00:00:00Z' } },
  { licenseKey: keys.running, purchase: { subscription_cancelled_at: '2099-01-31T00:00:00Z' } },
  { licenseKey: keys.unseen },
];

/** Gumroad, the network in front of it, and an agent of it. */
export interface GumroadHarness extends AsyncDisposable {
  readonly store: GumroadStore;
  readonly network: FaultProxy;
  readonly agent: Agent;
  /** The configuration of the agent. */
  readonly file: string;
  /** Kills the agent, and starts another one on its store. */
  restart(changes?: Configuration): Promise<Agent>;
  /** A call of the API as software sends it: by default a verify, with its parameters in a form. */
  call(licenseKey: string, parameters?: Record<string, string>, name?: string): Promise<HttpResponse>;
}

export async function openGumroad(
  products: readonly GumroadProduct[] = [{ productId, permalink }],
  sold: readonly GumroadSale[] = sales,
): Promise<GumroadStore> {
  const store = new GumroadStore(products, { accessToken });
  for (const sale of sold) store.sell(sale);
  await store.start();
  return store;
}

export async function startGumroad(
  configuration: Configuration = {},
  products?: readonly GumroadProduct[],
): Promise<GumroadHarness> {
  await using opened = new AsyncDisposableStack();
  const home: TemporaryDirectory = opened.use(temporaryDirectory());
  const store = opened.use(await openGumroad(products));
  const network = opened.use(await startFaultProxy(store.port));
  const configured = (changes: Configuration): object => ({
    listen: { tcp: '127.0.0.1:0', ...changes.listen },
    upstream: {
      store: 'gumroad',
      base_url: network.url,
      access_token: accessToken,
      timeout: '10s',
      probe: '200ms',
      ...changes.upstream,
    },
    products: changes.products ?? (products ?? [{ productId }]).map((each) => ({ key: each.productId })),
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
    call: (licenseKey, parameters = {}, name = 'verify') => {
      const form = { product_id: productId, license_key: licenseKey, ...parameters };
      const path = `/v2/licenses/${name}`;
      return name === 'verify' ? agent.client.post(path, { form }) : agent.client.put(path, { form });
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** What a program gets: the answer; null: the connection was closed. */
export async function answerOf(response: Promise<HttpResponse>): Promise<HttpResponse | null> {
  return await response.catch(() => null);
}
