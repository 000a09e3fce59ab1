import { expect, test } from 'vitest';
import {
  codeOf,
  eventually,
  secret,
  startHarness,
  type Agent,
  type AgentHarness,
} from '../support/harness/agent-harness.ts';
import {
  every,
  firewallPage,
  movesCounter,
  rateLimited,
  type LedgerEntry,
} from '../support/harness/plain-upstream.ts';

const otherSecret = 'other-secret';

/** A harness with a second product, whose key is LICENSE-2. */
function harnessOfTwoProducts(): Promise<AgentHarness> {
  return startHarness({
    licenses: ['LICENSE-1', { licenseKey: 'LICENSE-2', productKey: 'other' }],
    upstream: {
      products: [
        { productKey: 'product', secret },
        { productKey: 'other', secret: otherSecret },
      ],
    },
    configuration: {
      products: [
        { key: 'product', secret },
        { key: 'other', secret: otherSecret },
      ],
    },
  });
}

const asOther = { 'product-secret-key': otherSecret };

async function learnBoth(agent: Agent): Promise<void> {
  await agent.learn(['LICENSE-1']);
  await eventually(async () => (await agent.verify('LICENSE-2', asOther)).status === 200);
}

function requestsFor({ upstream }: AgentHarness, licenseKey: string): LedgerEntry[] {
  return upstream.ledger.filter((entry) => entry.licenseKey === licenseKey);
}

test.concurrent(
  'a secret that the upstream refuses pauses only its product, and the right secret resumes it',
  async () => {
    await using harness = await harnessOfTwoProducts();
    const { upstream } = harness;
    // Without a probe, because the first refusal would hit the use or the probe by chance.
    const agent = await harness.startAgent({ upstream: { probe: '1h' } });
    await learnBoth(agent);
    upstream.rotateSecret('product', 'another-secret');
    expect((await agent.change('usage', 'LICENSE-1')).status).toBe(200);
    const line = await agent.process.said('the upstream refuses our credential');
    expect(line).toMatchObject({ product: 'product', error: 'HTTP 401: Wrong product secret key' });
    expect(line['hint']).toContain('latchkey sync resume');

    // Everything else continues: verdicts from the snapshot, recorded uses, and the other product.
    expect((await agent.verify('LICENSE-1')).status).toBe(200);
    expect((await agent.change('usage', 'LICENSE-1')).headers['latchkey-pending']).toBe('2');
    await agent.change('usage', 'LICENSE-2', asOther);
    await upstream.until(() => upstream.license('LICENSE-2').uses === 1);
    const operations = await agent.operations('pending');
    expect(operations.map(({ license_key: key, kind }) => [key, kind])).toEqual([
      ['LICENSE-1', 'usage'],
      ['LICENSE-1', 'usage'],
    ]);
    expect(operations[0]?.last_error).toBe('HTTP 401: Wrong product secret key');

    // The agent does not retry with a refused secret.
    for (let ask = 0; ask < 5; ask += 1) await agent.verify(`UNKNOWN-${ask}`);
    const refused = upstream.ledger.filter(({ answered }) => answered === 'status:401');
    expect(refused.filter(movesCounter)).toHaveLength(1);
    // One read asks again a second later to make sure.
    expect(refused.length).toBeLessThanOrEqual(2);

    await harness.reconfigure({
      products: [
        { key: 'product', secret: 'another-secret' },
        { key: 'other', secret: otherSecret },
      ],
    });
    await agent.atRest();
    expect(upstream.license('LICENSE-1').uses).toBe(2);
  },
);

test.concurrent(
  'HTML pages of a firewall change no verdict and no use, and the uses arrive once the firewall opens',
  async () => {
    await using harness = await startHarness({ licenses: ['LICENSE-1', 'LICENSE-2'] });
    const { upstream } = harness;
    const agent = await harness.startAgent();
    await agent.learn(['LICENSE-1', 'LICENSE-2']);
    upstream.fault = every(firewallPage(403));
    for (const key of ['LICENSE-1', 'LICENSE-2', 'LICENSE-1', 'LICENSE-2']) {
      expect((await agent.change('usage', key)).status).toBe(200);
    }
    await eventually(async () => (await agent.status()).upstream.breaker !== 'closed');
    await eventually(async () => (await agent.status()).upstream.state === 'down');
    const { upstream: state } = await agent.status();
    expect(state.last_error).toContain('firewall');
    expect((await agent.verify('LICENSE-1')).status).toBe(200);

    // While the breaker is open, the agent sends only probes, which are reads.
    const opened = upstream.ledger.length;
    await upstream.until(() => upstream.ledger.length >= opened + 3);
    const probes = upstream.ledger.slice(opened + 1);
    expect(new Set(probes.map(({ kind }) => kind))).toEqual(new Set(['verify']));
    const gaps = probes.slice(1).map(({ at }, index) => at - (probes[index]?.at ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(190);

    upstream.fault = () => undefined;
    await agent.atRest();
    expect([upstream.license('LICENSE-1').uses, upstream.license('LICENSE-2').uses]).toEqual([2, 2]);
  },
);

test.concurrent(
  'a full outbox refuses writes with 507 and keeps verifying, and accepts writes again once it has drained',
  async () => {
    await using harness = await startHarness({
      licenses: ['LICENSE-1'],
      configuration: { sync: { max_pending: 3 } },
    });
    const { upstream, proxy } = harness;
    const agent = await harness.startAgent();
    await agent.learn(['LICENSE-1']);
    await proxy.become({ kind: 'refuse' });
    const uses: number[] = [];
    for (let use = 0; use < 3; use += 1) uses.push((await agent.change('usage', 'LICENSE-1')).status);
    expect(uses).toEqual([200, 200, 200]);
    const refusals = [
      await agent.change('usage', 'LICENSE-1'),
      await agent.change('disable', 'LICENSE-1'),
      await agent.createCoupon({ code: 'FULL' }),
    ];
    expect(refusals.map((answer) => [answer.status, codeOf(answer)])).toEqual(
      refusals.map(() => [507, 'storage_full']),
    );
    expect(refusals[0]?.body).toMatchObject({ detail: expect.stringContaining('outbox is full') as string });
    const verified = await agent.verify('LICENSE-1');
    expect([verified.status, verified.headers['latchkey-pending']]).toEqual([200, '3']);
    expect((await agent.client.get('/readyz')).status).toBe(200);

    await proxy.become({ kind: 'pass' });
    await agent.atRest();
    expect((await agent.change('usage', 'LICENSE-1')).status).toBe(200);
    await agent.atRest();
    expect(upstream.license('LICENSE-1').uses).toBe(4);
    expect(upstream.coupons).toEqual([]);
  },
);

const goneMs = 1_500;

test.concurrent(
  'operations of a key that was deleted upstream wait until the deletion is certain, then become dead with the reason',
  async () => {
    await using harness = await startHarness({
      licenses: ['LICENSE-1', 'LICENSE-2'],
      configuration: { freshness: { gone: `${goneMs}ms` } },
    });
    const { upstream } = harness;
    const agent = await harness.startAgent();
    await agent.learn(['LICENSE-1', 'LICENSE-2']);
    upstream.forget('LICENSE-1');
    await agent.change('usage', 'LICENSE-1');
    await agent.change('disable', 'LICENSE-1');
    let firstDeadAt: number | null = null;
    await eventually(async () => {
      const { dead } = (await agent.status()).outbox;
      if (dead > 0) firstDeadAt ??= Date.now();
      return dead === 2;
    });
    const missing = requestsFor(harness, 'LICENSE-1').find(({ answered }) => answered === 'status:404');
    expect(Number(firstDeadAt) - (missing?.at ?? 0)).toBeGreaterThanOrEqual(goneMs - 10);
    const reason = 'the upstream does not know this license key';
    const dead = await agent.operations('dead');
    expect(dead).toMatchObject([
      { kind: 'usage', last_error: reason },
      { kind: 'disable', last_error: reason },
    ]);
    expect(codeOf(await agent.verify('LICENSE-1'))).toBe('license_not_found');
    // They do not block other keys, and remain until a person decides.
    await agent.change('usage', 'LICENSE-2');
    await upstream.until(() => upstream.license('LICENSE-2').uses === 1);
    await agent.ask(`/admin/v1/outbox/${dead[0]?.id ?? ''}/drop`, 'post');
    expect((await agent.status()).outbox.dead).toBe(1);
    expect(await agent.operations('dropped')).toMatchObject([{ kind: 'usage', last_error: reason }]);
  },
);

test.concurrent(
  'a product removed from the configuration keeps its operations, and delivers them once it is configured again',
  async () => {
    await using harness = await harnessOfTwoProducts();
    const { upstream, proxy } = harness;
    const agent = await harness.startAgent();
    await learnBoth(agent);
    await proxy.become({ kind: 'refuse' });
    await agent.change('usage', 'LICENSE-1');
    await agent.change('usage', 'LICENSE-2', asOther);
    await harness.reconfigure({ products: [{ key: 'other', secret: otherSecret }] });
    await proxy.become({ kind: 'pass' });
    await upstream.until(() => upstream.license('LICENSE-2').uses === 1);
    const line = await agent.process.said('a product is no longer configured: its changes wait');
    expect(line).toMatchObject({ product: 'product' });
    const keepsIt = async (): Promise<boolean> => {
      const [first, ...others] = await agent.operations();
      return first?.state === 'pending' && first.license_key === 'LICENSE-1' && others.length === 0;
    };
    await eventually(keepsIt);
    // The agent sent nothing for the product, so that the upstream refused nothing.
    expect((await agent.status()).upstream.paused_products).toEqual([]);
    expect(agent.process.lines.map(({ msg }) => msg)).not.toContain('the upstream refuses our credential');
    // The product's secret is no longer accepted.
    expect((await agent.verify('LICENSE-1')).status).toBe(401);

    await agent.kill();
    const successor = await harness.startAgent();
    await eventually(async () => (await successor.status()).outbox.pending === 1);
    await harness.reconfigure({
      products: [
        { key: 'product', secret },
        { key: 'other', secret: otherSecret },
      ],
    });
    await successor.atRest();
    expect(upstream.license('LICENSE-1').uses).toBe(1);
  },
);

test.concurrent('a product without a secret does not reveal whether the upstream is down', async () => {
  await using harness = await harnessOfTwoProducts();
  const agent = await harness.startAgent();
  await learnBoth(agent);
  await harness.proxy.become({ kind: 'refuse' });
  await agent.change('usage', 'LICENSE-1');
  await eventually(async () => (await agent.status()).upstream.state === 'down');
  await harness.reconfigure({ products: [] });
  await agent.kill();
  const successor = await harness.startAgent();
  await successor.process.said('a product is no longer configured: its changes wait');
  const stateNow = async (): Promise<string> => (await successor.status()).upstream.state;
  await eventually(async () => (await stateNow()) !== 'unknown');
  expect(await stateNow()).toBe('down');
});

/** An agent whose use of LICENSE-1 was answered 429, and the time of that response. */
async function harnessAskedToWait(retryAfter: () => number | Date) {
  await using setting = new AsyncDisposableStack();
  const harness = setting.use(await startHarness({ licenses: ['LICENSE-1', 'LICENSE-2', 'LICENSE-3'] }));
  const { upstream } = harness;
  const freshness = { fresh: '10ms', stale: '1h', grace: '2h' };
  // Without a probe, which could be under way when the wait begins.
  const agent = await harness.startAgent({ freshness, upstream: { probe: '1h' } });
  await agent.learn(['LICENSE-1', 'LICENSE-2']);
  let refusedAt = 0;
  upstream.fault = (request) => {
    if (refusedAt > 0 || !movesCounter(request)) return undefined;
    refusedAt = Date.now();
    return rateLimited(retryAfter());
  };
  await agent.change('usage', 'LICENSE-1');
  await eventually(async () => (await agent.operations())[0]?.last_error?.startsWith('HTTP 429') ?? false);
  const owned = setting.move();
  const asked = upstream.ledger.length;
  return { agent, upstream, refusedAt, asked, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/**
 * Tries another use, a stale key, a new key, a coupon and `sync now`; returns the response for the
 * new key.
 */
async function tryEverything(agent: Agent): Promise<[status: number, code: unknown]> {
  await agent.change('usage', 'LICENSE-2');
  await agent.verify('LICENSE-2');
  const unknown = await agent.verify('LICENSE-3');
  await agent.createCoupon({ code: 'SOON' });
  await agent.ask('/admin/v1/sync/now', 'post');
  return [unknown.status, codeOf(unknown)];
}

const waits: [string, () => number | Date, number][] = [
  ['seconds', () => 5, 5_000],
  // A date has whole seconds, so that the wait is between five and six seconds.
  ['a date', () => new Date(Date.now() + 6_000), 5_000],
];

for (const [form, retryAfter, atLeastMs] of waits) {
  test.concurrent(
    `a 429 with Retry-After as ${form} pauses everything, including reads and \`sync now\``,
    async () => {
      await using harness = await harnessAskedToWait(retryAfter);
      const { agent, upstream, refusedAt, asked } = harness;
      await tryEverything(agent);
      await agent.atRest();
      expect((upstream.ledger[asked]?.at ?? 0) - refusedAt).toBeGreaterThanOrEqual(atLeastMs - 10);
      expect([upstream.license('LICENSE-1').uses, upstream.license('LICENSE-2').uses]).toEqual([1, 1]);
      expect(upstream.coupons.map(({ code }) => code)).toEqual(['SOON']);
    },
  );
}

test.concurrent('while a 429 pauses everything, a verify of an unknown key does not wait', async () => {
  await using harness = await harnessAskedToWait(() => 3_600);
  const { agent, upstream, asked } = harness;
  expect(await tryEverything(agent)).toEqual([503, 'upstream_unreachable']);
  expect(upstream.ledger.slice(asked)).toEqual([]);
});
