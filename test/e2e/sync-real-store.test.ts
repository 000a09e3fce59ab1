import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  type Agent,
  type AgentHarness,
  codeOf,
  credentials,
  dataOf,
  eventually,
  startHarness,
  startAgentHarness,
  type HarnessOptions,
} from '../support/harness/agent-harness.ts';
import { latchkey } from '../support/process/command-line.ts';
import { httpClient, type HttpResponse, type HttpClient } from '../support/network/raw-http.ts';
import { freePort } from '../support/network/free-port.ts';
import {
  firewallPage,
  firstFew,
  type LedgerEntryDraft,
  movesCounter,
} from '../support/harness/plain-upstream.ts';
import {
  challengePage,
  edgePage,
  realStoreOptions,
  type Unknown,
  unreadableCoupon,
} from '../support/harness/real-store.ts';

/*
 * Tests an agent in front of a store as real stores behave: behind a firewall, and with their own response
 * for an unknown key.
 */

const variants = ['bad request', 'empty', 'no data'] as const;

/** A harness whose store behaves so, and an agent configuration that knows this behaviour. */
function before(unknown: Unknown, { configuration = {}, ...options }: HarnessOptions = {}): HarnessOptions {
  const { upstream, ...rest } = configuration;
  return {
    ...options,
    upstream: realStoreOptions(unknown),
    configuration: {
      limits: { misses: 1_000 },
      ...rest,
      upstream: { dialect: 'payhip', probe: '1h', ...upstream },
    },
  };
}

function timesAsked({ upstream }: AgentHarness, licenseKey: string): number {
  return upstream.ledger.filter((entry) => entry.licenseKey === licenseKey).length;
}

const isUse = (request: LedgerEntryDraft): boolean => movesCounter(request);

test.concurrent.each(variants)(
  "customers' typing errors are 404 at once, cached, and not upstream failures, if the store says unknown by: %s",
  async (unknown) => {
    await using harness = await startHarness(before(unknown, { licenses: ['KEY'] }));
    const agent = await harness.startAgent();
    const typos = Array.from({ length: 30 }, (_, index) => `TYPO-${index}`);
    for (const typo of typos) {
      const answer = await agent.verify(typo);
      expect([answer.status, codeOf(answer)]).toEqual([404, 'license_not_found']);
    }
    for (const typo of typos) expect((await agent.change('usage', typo)).status).toBe(404);
    // Each key was looked up once, and cached.
    expect(typos.map((typo) => timesAsked(harness, typo))).toEqual(typos.map(() => 1));
    expect((await agent.status()).upstream).toMatchObject({
      state: 'up',
      breaker: 'closed',
      last_error: null,
    });
    // A real key is found by its first request, because nothing blocks the lookups.
    expect((await agent.verify('KEY')).status).toBe(200);
  },
);

test.concurrent('in the dialect of the specification, such a store counts as failing', async () => {
  const options = before('empty', { configuration: { upstream: { dialect: 'specification' } } });
  await using harness = await startHarness(options);
  const agent = await harness.startAgent();
  for (let index = 0; index < 10; index += 1) {
    expect(codeOf(await agent.verify(`TYPO-${index}`))).toBe('upstream_unreachable');
  }
  expect((await agent.status()).upstream.breaker).not.toBe('closed');
});

const goneMs = 1_500;
const short = { refresh: '100ms', unknown: '50ms', gone: `${goneMs}ms` };

/** The time from the store's first 404 of the key until now, in which the key became gone. */
function goneAfterMs({ upstream }: AgentHarness, licenseKey: string, deletedAt: number): number {
  const asked = upstream.ledger.find((entry) => entry.licenseKey === licenseKey && entry.at >= deletedAt);
  return Date.now() - (asked?.at ?? deletedAt);
}

test.concurrent.each(variants)(
  'a deleted key is gone after a while and comes back with the key, if the store says unknown by: %s',
  async (unknown) => {
    const licenses = ['DELETED', 'WITNESS'];
    await using harness = await startAgentHarness(
      before(unknown, { licenses, configuration: { freshness: short } }),
    );
    const { agent } = harness;
    const deletedAt = Date.now();
    harness.upstream.forget('DELETED');
    const statuses = new Set<number>();
    await eventually(async () => {
      const { status } = await agent.verify('DELETED');
      statuses.add(status);
      return status === 404;
    });
    expect(goneAfterMs(harness, 'DELETED', deletedAt)).toBeGreaterThanOrEqual(goneMs - 10);
    expect([...statuses].filter((status) => status !== 200)).toEqual([404]);
    expect((await agent.verify('WITNESS')).status).toBe(200);
    harness.upstream.addLicense({
      licenseKey: 'DELETED',
      productKey: 'product',
      buyerEmail: 'b@example.com',
    });
    await eventually(async () => (await agent.verify('DELETED')).status === 200);
    expect((await agent.status()).upstream.breaker).toBe('closed');
  },
);

test.concurrent(
  'a use of a deleted key waits until reads prove that the key is gone, and arrives when the key comes back',
  async () => {
    const licenses = ['DELETED', 'WITNESS'];
    // Only the use causes a read of the key.
    const freshness = { ...short, refresh: '1h' };
    const options = before('bad request', { licenses, configuration: { freshness } });
    await using harness = await startAgentHarness(options);
    const { agent, upstream } = harness;
    const deletedAt = Date.now();
    upstream.forget('DELETED');
    expect((await agent.change('usage', 'DELETED')).status).toBe(200);
    await eventually(async () => (await agent.operations('dead')).length === 1);
    expect(upstream.ledger.some(isUse)).toBe(true);
    // The agent treats the store's 400 for the use like a 404, so that the use is not dead at once.
    expect(goneAfterMs(harness, 'DELETED', deletedAt)).toBeGreaterThanOrEqual(goneMs - 10);
    upstream.addLicense({ licenseKey: 'DELETED', productKey: 'product', buyerEmail: 'b@example.com' });
    await eventually(async () => (await agent.verify('DELETED')).status === 200);
    await eventually(() => upstream.license('DELETED').uses === 1);
  },
);

/** This reconcile delay cannot end within the test. */
const longDelay = { sync: { reconcile_after: '1h' } };

/** Whether any operation is uncertain, or is held. */
async function hadDoubt(agent: Agent): Promise<boolean> {
  const { uncertain, held } = (await agent.status()).outbox;
  return uncertain + held > 0;
}

test.concurrent(
  'a firewall’s challenge page for a use causes no reconcile delay and pauses no credential',
  async () => {
    await using harness = await startAgentHarness(
      before('bad request', { licenses: ['KEY'], configuration: longDelay }),
    );
    const { agent, upstream } = harness;
    upstream.fault = firstFew(3, challengePage(), isUse);
    expect((await agent.change('usage', 'KEY')).status).toBe(200);
    await upstream.until(() => upstream.countsOf('KEY').net === 1);
    await eventually(async () => (await agent.operations()).length === 0);
    expect(upstream.ledger.filter(isUse)).toHaveLength(4);
    expect((await agent.status()).upstream.paused_products).toEqual([]);
    expect(dataOf(await agent.verify('KEY'))['uses']).toBe(1);
  },
);

test.concurrent(
  'a coupon that meets a challenge page is queued, and created once the firewall lets it pass',
  async () => {
    await using harness = await startAgentHarness(before('bad request', { configuration: longDelay }));
    const { agent, upstream } = harness;
    upstream.fault = firstFew(2, challengePage(), ({ kind }) => kind === 'create_coupon');
    expect((await agent.createCoupon({ code: 'SPRING' })).status).toBe(201);
    await upstream.until(() => upstream.coupons.length === 1);
    await eventually(async () => (await agent.operations()).length === 0);
  },
);

test.concurrent.each([
  ['a firewall page without known marks', firewallPage(403)],
  ['an edge server that lost the response', edgePage(520, true)],
])('a use stays uncertain for its reconcile delay after %s', async (_, fault) => {
  await using harness = await startAgentHarness(
    before('bad request', { licenses: ['KEY'], configuration: longDelay }),
  );
  harness.upstream.fault = firstFew(1, fault, isUse);
  await harness.agent.change('usage', 'KEY');
  await eventually(() => hadDoubt(harness.agent));
  expect(harness.upstream.ledger.filter(isUse)).toHaveLength(1);
});

test.concurrent('a coupon that cannot be read is omitted, and logged once', async () => {
  await using harness = await startHarness(
    before('bad request', { configuration: { freshness: { fresh: '1ms' } } }),
  );
  const { upstream } = harness;
  upstream.addCoupon({ code: 'A', percent_off: 5 });
  const { id } = upstream.addCoupon(unreadableCoupon);
  upstream.addCoupon({ code: 'B', percent_off: 5 });
  const agent = await harness.startAgent();
  const lists = (): number => upstream.ledger.filter(({ kind }) => kind === 'list_coupons').length;
  await eventually(async () => {
    const answer = await agent.client.get('/api/v2/coupons', { headers: { 'service-api-key': 'api-key' } });
    expect(answer.status).toBe(200);
    expect((dataOf(answer)['coupons'] as { code: string }[]).map(({ code }) => code)).toEqual(['A', 'B']);
    return lists() >= 3;
  });
  const warned = agent.process.lines.filter(({ msg }) => msg?.includes('cannot be read'));
  expect(warned).toMatchObject([{ coupon: id }]);
});

test.concurrent('an agent answers existing software exactly as the store would', async () => {
  const licenses = [{ licenseKey: 'KEY', uses: 3, date: '2024-02-22T11:23:05+00:00' }];
  await using harness = await startHarness(
    before('bad request', { licenses, configuration: { listen: { dialect: 'payhip' } } }),
  );
  const agent = await harness.startAgent();
  await using store = httpClient({ tcp: harness.upstream.url });
  const ask = (client: HttpClient, licenseKey: string): Promise<HttpResponse> =>
    client.get(`/api/v2/license/verify?license_key=${licenseKey}`, { headers: credentials });
  expect((await ask(agent.client, 'KEY')).body).toEqual((await ask(store, 'KEY')).body);
  for (const client of [store, agent.client]) {
    const refusal = await ask(client, 'TYPO');
    expect(refusal.status).toBe(400);
    expect(refusal.body).toMatchObject({ error: true });
  }
  // The store's own `data: []` is truthy in JavaScript.
  expect((await ask(agent.client, 'TYPO')).body).not.toHaveProperty('data');
  expect(dataOf(await agent.verify('KEY'))).toMatchObject({ product_name: 'The name of product' });
  expect(dataOf(await agent.change('usage', 'KEY'))).toMatchObject({
    uses: 4,
    product_name: 'The name of product',
  });
});

test("an agent reports at once that the store's host is mapped to its own machine, and connect_to solves it", async () => {
  await using harness = await startHarness(before('bad request', { licenses: ['KEY'] }));
  const port = await freePort();
  const mapped = {
    listen: { tcp: `127.0.0.1:${port}` },
    upstream: { base_url: `http://localhost:${port}`, timeout: '60s' },
  };
  const agent = await harness.startAgent(mapped);
  const itself = /this agent’s upstream points to itself/;
  for (const ask of [() => agent.verify('KEY'), () => agent.change('usage', 'KEY')]) {
    const answer = await ask();
    expect([answer.status, codeOf(answer)]).toEqual([503, 'upstream_unreachable']);
    expect(JSON.stringify(answer.body)).toMatch(itself);
  }
  expect((await agent.status()).upstream).toMatchObject({
    state: 'down',
    last_error: expect.stringMatching(itself),
  });
  await eventually(() => agent.process.lines.some(({ error }) => itself.test(String(error))));
  const config = join(harness.directory, 'config.yaml');
  for (const command of [['doctor'], ['config', 'check', '--connect']]) {
    const said = await latchkey(...command, '--config', config);
    expect(said.code).toBe(1);
    expect(said.out).toContain(
      `http://localhost:${port} leads to this agent itself  →  set upstream.connect_to to the address of the store`,
    );
  }

  const store = harness.proxy.url.replace('http://', '');
  const mended = await harness.startAgent({ upstream: { connect_to: store } });
  expect((await mended.verify('KEY')).status).toBe(200);
  expect((await mended.change('usage', 'KEY')).status).toBe(200);
  await mended.atRest();
  expect(harness.upstream.license('KEY').uses).toBe(1);
  for (const { headers } of harness.upstream.ledger) expect(headers['host']).toBe(`localhost:${port}`);
  const checked = await latchkey('config', 'check', '--connect', '--config', config);
  expect([checked.code, checked.out]).toEqual([0, expect.stringContaining(`go to ${store}`)]);
});
