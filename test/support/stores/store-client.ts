import { expect, test } from 'vitest';
import { trustSystemAnd } from '../../../src/daemon/system/trust.ts';
import type { Outcome } from '../../../src/domain/outbox/outcome.ts';
import type { StandIn, StandInFault } from '../../../src/features/sandbox/stores/stand-in.ts';
import type { ConnectSettings, Store } from '../../../src/stores/store.ts';
import type { ConnectionSettings } from '../../../src/upstream/connections.ts';
import { networkTransport } from '../../../src/upstream/exchange.ts';

/** A stand-in for a store, and a client of it. */
export type ClientScene<Opened extends StandIn, Client> = AsyncDisposable & { store: Opened; client: Client };

/** `url`: of the store, unless something else answers there. */
export function openClient<Opened extends StandIn, Client extends AsyncDisposable>(
  store: Opened,
  Client: new (...parts: Parameters<NonNullable<Store['connect']>>) => Client,
  {
    productKey,
    accessToken,
    url = store.url,
  }: { productKey: string; accessToken: string | null; url?: string },
): ClientScene<Opened, Client> {
  const settings: ConnectionSettings & ConnectSettings = {
    baseUrl: url,
    timeoutMs: 5_000,
    trust: trustSystemAnd(),
    proxy: () => null,
    connectTo: null,
    maxConnections: () => 4,
    userAgent: 'latchkey/test',
    self: 'me',
    productKeyOf: () => productKey,
    accessToken: () => accessToken,
  };
  const now = (): number => Date.now();
  const client = new Client(networkTransport(settings), settings, { now, confirmed: now, monotonic: now });
  return {
    store,
    client,
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

/** Tests that nothing is a verdict that the store has not said. `ask`: sends a request of each kind, in turn. */
export function testNoVerdicts<Opened extends StandIn, Client>(
  open: () => Promise<ClientScene<Opened, Client>>,
  ask: (scene: ClientScene<Opened, Client>) => readonly (() => Promise<Outcome<unknown>>)[],
): void {
  test.each<[StandInFault, object]>([
    ['lost_request', { outcome: 'ambiguous' }],
    ['lost_answer', { outcome: 'ambiguous' }],
    ['limited', { reason: 'throttled' }],
    ['limited_empty', { reason: 'throttled', retryAfterMs: 1_000 }],
    ['page', { outcome: 'ambiguous' }],
    ['welcome_page', { outcome: 'ambiguous' }],
    ['challenge', { reason: 'challenged' }],
  ])('%s says nothing about the key, and nothing about a change', async (fault, expected) => {
    await using it = await open();
    it.store.fault = () => fault;
    for (const send of ask(it)) expect(await send()).toMatchObject(expected);
  });

  test.each([400, 401, 403, 404, 405, 409, 422])(
    'a %d that the store does not send is no verdict, and a change is sent again',
    async (status) => {
      await using it = await open();
      it.store.handle = () => ({ status, body: { error: 'Not allowed in this network' } });
      for (const send of ask(it)) expect(await send()).toMatchObject({ reason: 'rejected' });
    },
  );
}
