import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { AgentUnavailableError, connect, isProblem, type LatchkeyClient } from '../../src/client/index.ts';
import { startSandbox, type Sandbox } from '../../src/testing.ts';
import { startFaultProxy, type FaultProxy } from '../support/network/fault-proxy.ts';
import { listen } from '../support/network/listener.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const counted = {
  data: {
    license_key: 'KEY',
    product_link: 'RGsF',
    buyer_email: 'buyer@example.com',
    enabled: true,
    uses: 1,
    date: '2026-01-01T00:00:00Z',
  },
};

/** A deadline that is long enough on any machine. */
const patienceMs = 50_000;

let sandbox: Sandbox;
let proxy: FaultProxy;
let client: LatchkeyClient;
let sold = 0;

/** A license key that no other test uses. */
async function newKey(): Promise<string> {
  sold += 1;
  await sandbox.store.sell([{ licenseKey: `KEY-${sold}` }]);
  return `KEY-${sold}`;
}

async function countedOf(licenseKey: string): Promise<number | undefined> {
  await sandbox.settled();
  return (await sandbox.store.license(licenseKey))?.uses;
}

beforeAll(async () => {
  sandbox = await startSandbox({ licenses: [] });
  proxy = await startFaultProxy(Number(new URL(sandbox.agent.url).port));
  client = connect({ url: proxy.url, productSecret: sandbox.productSecret, apiKey: sandbox.apiKey });
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await sandbox[Symbol.asyncDispose]();
});

it('a change is made at the agent and reaches the store', async () => {
  const key = await newKey();
  expect(await client.use(key)).toMatchObject({ license: { uses: 1, enabled: true }, freshness: 'fresh' });
  await client.use(key);
  expect((await client.undo(key)).license.uses).toBe(1);
  expect((await client.disable(key)).license.enabled).toBe(false);
  expect(await countedOf(key)).toBe(1);
  expect((await client.enable(key)).license.enabled).toBe(true);
  expect((await sandbox.store.license(key))?.enabled).toBe(true);
});

it('a change with waitMs waits for the store', async () => {
  const key = await newKey();
  expect(await client.use(key, { waitMs: 30_000 })).toMatchObject({ pending: 0, license: { uses: 1 } });
});

it('a change whose answer is lost is repeated under its key and counts once', async () => {
  const key = await newKey();
  await client.verify(key);
  await proxy.become({ kind: 'reset_answer' });
  const used = client.use(key, { deadlineMs: patienceMs });
  await expect.poll(() => countedOf(key)).toBe(1);
  await proxy.become({ kind: 'pass' });
  expect((await used).license.uses).toBe(1);
  expect(await countedOf(key)).toBe(1);
});

it('a change without an answer may have counted, and can be repeated later under its key', async () => {
  const key = await newKey();
  await client.verify(key);
  await proxy.become({ kind: 'reset_answer' });
  const failed = await client.use(key, { deadlineMs: 1_500 }).catch((error: unknown) => error);
  await proxy.become({ kind: 'pass' });
  expect(failed).toBeInstanceOf(AgentUnavailableError);
  const { idempotencyKey, mayHaveCounted } = failed as AgentUnavailableError;
  expect(mayHaveCounted).toBe(true);
  const again = await client.use(key, { idempotencyKey: String(idempotencyKey) });
  expect(again.license.uses).toBe(1);
  expect(await countedOf(key)).toBe(1);
});

it('a change may have counted although later attempts reach no agent', async () => {
  const key = await newKey();
  await client.verify(key);
  await proxy.become({ kind: 'reset_answer' });
  const failed = client.use(key, { deadlineMs: 1_500 }).catch((error: unknown) => error);
  await expect.poll(() => countedOf(key)).toBe(1);
  await proxy.become({ kind: 'refuse' });
  expect(await failed).toMatchObject({ mayHaveCounted: true });
  await proxy.become({ kind: 'pass' });
});

it('a change that never reached an agent has not counted', async () => {
  const fresh = connect({ url: proxy.url, productSecret: sandbox.productSecret });
  await proxy.become({ kind: 'refuse' });
  const failed = await fresh.use('KEY', { deadlineMs: 200 }).catch((error: unknown) => error);
  await proxy.become({ kind: 'pass' });
  expect(failed).toMatchObject({ mayHaveCounted: false, idempotencyKey: expect.any(String) as string });
  expect((failed as Error).cause).toBeInstanceOf(Error);
});

it('a change waits for an agent that restarts on another port', async () => {
  const key = await newKey();
  const found = connect({ stateDir: sandbox.agent.stateDir, productSecret: sandbox.productSecret });
  await found.use(key);
  await sandbox.agent.stop();
  const used = found.use(key, { deadlineMs: patienceMs });
  await sandbox.agent.start();
  expect((await used).license.uses).toBe(2);
});

// On Windows, no other agent is looked for in XDG_RUNTIME_DIR.
it.skipIf(process.platform === 'win32')(
  'a change that one agent may have counted is not sent to another agent',
  async () => {
    await using state = temporaryDirectory();
    await using runtime = temporaryDirectory();
    vi.stubEnv('XDG_STATE_HOME', state.path);
    vi.stubEnv('XDG_RUNTIME_DIR', runtime.path);
    for (const { path } of [state, runtime]) mkdirSync(join(path, 'latchkey'));
    let asked = 0;
    await using other = createServer((_, response) => {
      asked += 1;
      response.end(JSON.stringify(counted));
    });
    await once(other.listen(join(runtime.path, 'latchkey', 'latchkey.sock')), 'listening');
    const lost = Promise.withResolvers<void>();
    const receive: RequestListener = ({ socket }) => {
      socket.destroy();
      lost.resolve();
    };
    await using own = await listen(createServer(receive));
    const file = join(state.path, 'latchkey', 'listen.json');
    writeFileSync(file, JSON.stringify({ tcp: own.url }), { mode: 0o600 });
    const program = connect({ productSecret: 'the-secret' });
    const used = program.use('KEY', { deadlineMs: 1_500 }).catch((error: unknown) => error);
    await lost.promise;
    rmSync(file);
    expect(await used).toMatchObject({ mayHaveCounted: true });
    expect(asked).toBe(0);
    expect((await program.use('KEY')).license.uses).toBe(1);
    program.close();
  },
);

it('an aborted signal ends a change with the reason of the signal', async () => {
  await proxy.become({ kind: 'blackhole' });
  const reason = new Error('the window was closed');
  const ending = new AbortController();
  const used = client.use('KEY', { signal: ending.signal });
  setTimeout(() => {
    ending.abort(reason);
  }, 50);
  await expect(used).rejects.toBe(reason);
  await proxy.become({ kind: 'pass' });
});

it('a change with an aborted signal is not sent', async () => {
  const key = await newKey();
  await client.use(key);
  const reason = new Error('the window was closed');
  await expect(client.use(key, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  expect(await countedOf(key)).toBe(1);
});

it('the error after a deadline contains the deadline', async () => {
  await proxy.become({ kind: 'blackhole' });
  const failed = await client.use('KEY', { deadlineMs: 300 }).catch((error: unknown) => error);
  await proxy.become({ kind: 'pass' });
  expect(failed).toMatchObject({ message: 'The agent did not answer: the deadline of 300 ms passed' });
});

it('closing the client ends a change, which may have counted', async () => {
  const key = await newKey();
  await client.verify(key);
  await proxy.become({ kind: 'reset_answer' });
  const closed = connect({ url: proxy.url, productSecret: sandbox.productSecret });
  // Only the test's own time ends before these.
  const used = closed.use(key, { deadlineMs: 600_000 }).catch((error: unknown) => error);
  await expect.poll(() => countedOf(key)).toBe(1);
  await proxy.become({ kind: 'blackhole' });
  const asked = closed.verify(key, { deadlineMs: 600_000 });
  closed.close();
  const failed = await used;
  expect(await asked).toMatchObject({ verdict: 'undetermined', reason: 'agent_unavailable' });
  expect(failed).toBeInstanceOf(AgentUnavailableError);
  expect(failed).toMatchObject({
    message: 'The agent did not answer: the client was closed',
    mayHaveCounted: true,
    isTemporary: true,
  });
  await proxy.become({ kind: 'pass' });
  const { idempotencyKey } = failed as AgentUnavailableError;
  expect((await closed.use(key, { idempotencyKey: String(idempotencyKey) })).license.uses).toBe(1);
});

it.each([
  [503, '{"code":"outcome_unknown","title":"","detail":""}'],
  [507, '{"code":"storage_full","title":"","detail":""}'],
  [409, '{"code":"idempotency_key_in_use","title":"","detail":""}'],
  [408, '<p>A proxy: request timeout</p>'],
  [429, '<p>A proxy: too many requests</p>'],
  [502, '<p>A proxy: bad gateway</p>'],
])('a change is repeated under its key after the response %s %s', async (status, body) => {
  const asked: unknown[] = [];
  await using agent = await listen(
    createServer(({ headers }, response) => {
      asked.push(headers['idempotency-key']);
      const isFirst = asked.length === 1;
      response.writeHead(isFirst ? status : 200);
      response.end(isFirst ? body : JSON.stringify(counted));
    }),
  );
  const program = connect({ url: agent.url, productSecret: 'the-secret' });
  expect((await program.use('KEY', { idempotencyKey: 'one' })).license.uses).toBe(1);
  expect(asked).toEqual(['"one"', '"one"']);
});

it('a change is not repeated before Retry-After, so not at all if the deadline comes first', async () => {
  let asked = 0;
  await using agent = await listen(
    createServer((_, response) => {
      asked += 1;
      response.writeHead(503, { 'retry-after': '60' });
      response.end('{"code":"starting","title":"","detail":""}');
    }),
  );
  const program = connect({ url: agent.url, productSecret: 'the-secret' });
  const failed = await program.use('KEY', { deadlineMs: patienceMs }).catch((error: unknown) => error);
  expect(failed).toMatchObject({ code: 'starting', retryAfterMs: 60_000 });
  expect(asked).toBe(1);
});

it('a change of an unknown key fails with license_not_found', async () => {
  const failed = await client.use('NOBODY-HAS-IT').catch((error: unknown) => error);
  expect(isProblem(failed, 'license_not_found')).toBe(true);
  expect(isProblem(failed, 'rate_limited')).toBe(false);
  expect([isProblem(failed), isProblem(new Error('no problem'))]).toEqual([true, false]);
  expect(failed).toMatchObject({ status: 404, requestId: expect.any(String) as string });
});

it('an idempotency key of another change is refused', async () => {
  const [first, second] = [await newKey(), await newKey()];
  await client.use(first, { idempotencyKey: 'one' });
  const failed = await client.use(second, { idempotencyKey: 'one' }).catch((error: unknown) => error);
  expect(isProblem(failed, 'idempotency_key_reused')).toBe(true);
});

it('a waitMs above 30 s is rejected', async () => {
  await expect(client.use('KEY', { waitMs: 30_001 })).rejects.toThrow('waitMs must be 0 to 30,000.');
});

const cart = { code: 'MAY', items: [{ productKey: 'RGsF', amount: 1_000, quantity: 2 }] };

it('a coupon is quoted for a cart and redeemed once by an order', async () => {
  await sandbox.store.createCoupon({ coupon_type: 'multi', code: 'MAY', percent_off: 20 });
  await sandbox.agent.syncNow();
  await expect.poll(() => client.quote(cart).catch(() => null)).toMatchObject({ redeemable: true });
  expect(await client.quote(cart)).toMatchObject({
    subtotal: 2_000,
    discount: 400,
    total: 1_600,
    items: [{ productKey: 'RGsF', amount: 1_000, quantity: 2, discount: 400 }],
    scope: 'this_agent',
  });
  const redeemed = await client.redeem('order-1', cart);
  expect(redeemed).toMatchObject({ order: 'order-1', discount: 400 });
  expect(await client.redeem('order-1', cart)).toEqual(redeemed);
});

it('a coupon that cannot be redeemed gives its reasons', async () => {
  const failed = await client
    .redeem('order-2', { ...cart, items: [{ productKey: 'RGsF', amount: 1_000, recurring: true }] })
    .catch((error: unknown) => error);
  expect(isProblem(failed, 'coupon_not_redeemable')).toBe(true);
  expect(failed).toMatchObject({ reasons: ['recurring_not_covered'] });
});
