import { expect, test } from 'vitest';
import { startFaultProxy, type FaultProxy } from './fault-proxy.ts';
import { startPlainUpstream, type PlainUpstream } from '../harness/plain-upstream.ts';
import { httpClient, sendRaw, type HttpResponse, type RawResponse } from './raw-http.ts';

const key = 'KEY-1';
const form = `license_key=${key}`;
const rawUse = [
  'PUT /api/v2/license/usage HTTP/1.1',
  'Host: upstream',
  'Connection: close',
  'product-secret-key: secret-1',
  'Content-Type: application/x-www-form-urlencoded',
  `Content-Length: ${form.length}`,
  '',
  form,
].join('\r\n');

interface Scene extends AsyncDisposable {
  readonly upstream: PlainUpstream;
  readonly proxy: FaultProxy;
  /** Sends one use on a new connection. */
  readonly useAnew: (deadlineMs?: number) => Promise<RawResponse>;
  /** Sends one use on a connection that is kept alive. */
  readonly use: (signal?: AbortSignal) => Promise<HttpResponse>;
}

async function startHarness(): Promise<Scene> {
  const upstream = await startPlainUpstream({
    apiKey: 'api-1',
    products: [{ productKey: 'p1', secret: 'secret-1' }],
    licenses: [{ licenseKey: key, productKey: 'p1', buyerEmail: 'a@example.com' }],
  });
  const proxy = await startFaultProxy(upstream.port);
  const client = httpClient({ tcp: proxy.url });
  return {
    upstream,
    proxy,
    useAnew: (deadlineMs = 30_000) => sendRaw({ tcp: proxy.url }, rawUse, { deadlineMs }),
    use: (signal = AbortSignal.timeout(30_000)) =>
      client.put('/api/v2/license/usage', {
        headers: { 'product-secret-key': 'secret-1' },
        form: { license_key: key },
        signal,
      }),
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

test('a fault proxy without a fault passes everything', async () => {
  await using scene = await startHarness();
  const { upstream, use, useAnew } = scene;
  expect((await useAnew()).status).toBe(200);
  expect((await use()).status).toBe(200);
  expect(upstream.countsOf(key).net).toBe(2);
});

test('a fault proxy can refuse connections, reset open connections, and listen again on its port', async () => {
  await using scene = await startHarness();
  const { proxy, use, useAnew } = scene;
  await use();
  const { port } = proxy;
  await proxy.become({ kind: 'refuse' });
  await expect(use()).rejects.toMatchObject({
    code: expect.stringMatching(/^(ECONNREFUSED|ECONNRESET|UND_ERR_SOCKET)$/),
  });
  await expect(useAnew()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  expect(proxy.connections).toBe(0);
  await proxy.become({ kind: 'pass' });
  expect(proxy.port).toBe(port);
  expect((await use()).status).toBe(200);
});

test('a black hole swallows all bytes on open and on new connections', async () => {
  await using scene = await startHarness();
  const { proxy, upstream, use, useAnew } = scene;
  await use();
  await proxy.become({ kind: 'blackhole' });
  await expect(use(AbortSignal.timeout(30))).rejects.toThrow(/abort|timeout/i);
  expect(await useAnew(30)).toMatchObject({ raw: '', ending: 'deadline' });
  expect(upstream.ledger).toHaveLength(1);
});

test('a fault proxy can reset a new connection', async () => {
  await using scene = await startHarness();
  const { proxy, upstream, use } = scene;
  await proxy.become({ kind: 'reset_on_connect' });
  await expect(use()).rejects.toMatchObject({
    code: expect.stringMatching(/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/),
  });
  expect(upstream.ledger).toHaveLength(0);
});

test('a fault proxy can reset the connection after the request was processed', async () => {
  await using scene = await startHarness();
  const { proxy, upstream, use, useAnew } = scene;
  await proxy.become({ kind: 'reset_answer', containing: 'something else' });
  expect((await useAnew()).status).toBe(200);
  expect(proxy.resetResponses).toBe(0);
  await proxy.become({ kind: 'reset_answer' });
  expect(await useAnew()).toMatchObject({ raw: '', ending: 'reset' });
  await expect(use()).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect([proxy.resetResponses, upstream.countsOf(key).net]).toEqual([2, 3]);
});

test('a half-open connection forwards the request but never the response, and does not recover', async () => {
  await using scene = await startHarness();
  const { proxy, upstream, useAnew } = scene;
  await proxy.become({ kind: 'half_open' });
  const asked = useAnew(1_000);
  await upstream.until(() => upstream.ledger[0]?.answered === 'sent');
  await proxy.become({ kind: 'pass' });
  expect((await useAnew()).status).toBe(200);
  expect(await asked).toMatchObject({ raw: '', ending: 'deadline' });
  expect(upstream.countsOf(key).net).toBe(2);
});

test('a fault proxy can cut the response after a number of bytes', async () => {
  await using scene = await startHarness();
  const { proxy, upstream, use, useAnew } = scene;
  await use();
  await proxy.become({ kind: 'cut_answer', afterBytes: 17 });
  expect(await useAnew()).toMatchObject({ raw: 'HTTP/1.1 200 OK\r\n', ending: 'closed' });
  await expect(use()).rejects.toThrow(/closed|socket|terminated/i);
  expect(upstream.countsOf(key).net).toBe(3);
});

test('a fault proxy can delay requests and responses', async () => {
  await using scene = await startHarness();
  const { proxy, upstream, use } = scene;
  await proxy.become({ kind: 'latency', delayMs: 40 });
  const before = performance.now();
  expect((await use()).status).toBe(200);
  expect(performance.now() - before).toBeGreaterThanOrEqual(78);
  expect(upstream.countsOf(key).net).toBe(1);
});

test('a fault proxy resets its callers if the target is unavailable', async () => {
  await using scene = await startHarness();
  const { upstream, useAnew } = scene;
  await upstream.stop();
  expect(await useAnew()).toMatchObject({ raw: '', ending: 'reset' });
});

test('a disposed fault proxy leaves no connection open', async () => {
  await using scene = await startHarness();
  const { proxy, upstream, use, useAnew } = scene;
  await proxy.become({ kind: 'half_open' });
  const asked = use().catch(String);
  await upstream.until(() => upstream.ledger.length === 1);
  await proxy[Symbol.asyncDispose]();
  expect(await asked).toMatch(/ECONNRESET|closed/);
  expect(proxy.connections).toBe(0);
  await expect(useAnew()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
