import { onTestFinished, vi } from 'vitest';
import { trustSystemAnd } from '../../../src/daemon/system/trust.ts';
import { credentialHeaders } from '../../../src/domain/header-names.ts';
import { received as dialects } from '../stores/dialects.ts';
import { chooseProxy } from '../../../src/upstream/proxy.ts';
import { upstreamClient, type UpstreamClientSettings } from '../../../src/upstream/client.ts';
import type { Upstream, UpstreamChange } from '../../../src/service/ports.ts';
import { type FaultProxy, startFaultProxy } from '../network/fault-proxy.ts';
import { type PlainUpstream, type PlainUpstreamOptions, startPlainUpstream } from './plain-upstream.ts';

export const key = 'KEY-1';
/** The constant time of the client's clock. */
export const now: number = Date.UTC(2040, 0, 1);

export type Client = Upstream & AsyncDisposable;

/** Settings for an upstream that implements exactly the specification. */
export const asSpecified: Pick<UpstreamClientSettings, 'headers' | 'dialect' | 'userAgent' | 'self'> = {
  headers: { ...credentialHeaders },
  dialect: dialects.specification,
  userAgent: 'latchkey/test',
  self: null,
};

export type ClientSettings = Partial<Omit<UpstreamClientSettings, 'proxy' | 'trust'>> & {
  ca?: string;
  proxy?: string;
};

/** A client whose credentials fit the upstream of the harness. */
export function clientOf(baseUrl: string, { ca, proxy, ...settings }: ClientSettings = {}): Client {
  return upstreamClient(
    {
      baseUrl,
      apiKey: () => 'api-1',
      secretOf: (productKey) => (productKey === 'p1' ? 'secret-1' : null),
      ...asSpecified,
      timeoutMs: 5_000,
      trust: trustSystemAnd(...(ca === undefined ? [] : [ca])),
      proxy: () =>
        chooseProxy({ baseUrl, proxy: proxy ?? null, connectTo: settings.connectTo ?? null }, process.env),
      connectTo: null,
      maxConnections: () => 4,
      ...settings,
    },
    { now: () => now, confirmed: () => now, monotonic: () => now },
  );
}

export interface Harness extends AsyncDisposable {
  readonly server: PlainUpstream;
  /** The network between the client and the server. */
  readonly network: FaultProxy;
  readonly client: Client;
}

/** An upstream with one license, a network that can fail, and a client behind it. */
export async function startHarness(
  settings: ClientSettings = {},
  options: Partial<PlainUpstreamOptions> = {},
): Promise<Harness> {
  const server = await startPlainUpstream({
    apiKey: 'api-1',
    products: [{ productKey: 'p1', secret: 'secret-1' }],
    licenses: [
      { licenseKey: key, productKey: 'p1', buyerEmail: 'a@example.com', date: '2024-02-22T11:23:05+00:00' },
    ],
    ...options,
  });
  const network = await startFaultProxy(server.port);
  const client = clientOf(network.url, settings);
  return {
    server,
    network,
    client,
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await network[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

/**
 * Stops all timers until the end of the test, except for the time that `pass` lets pass. A slow machine then
 * cannot cause a timeout by chance.
 */
export function stopTimers(): { pass: (ms: number) => void } {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  return { pass: (ms) => vi.advanceTimersByTime(ms) };
}

/** A signal that is never aborted. */
export function never(): AbortSignal {
  return new AbortController().signal;
}

/** A change without a request that asked for it. */
export function changeOf(
  productKey: string,
  licenseKey: string,
  kind: UpstreamChange['kind'],
): UpstreamChange {
  return { productId: productKey, licenseKey, kind, requestId: null };
}
