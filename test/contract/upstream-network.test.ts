import { once } from 'node:events';
import { createServer } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { delayResponse, every, firstFew, hang } from '../support/harness/plain-upstream.ts';
import { certificate } from '../support/network/certificate.ts';
import { listen, listenSecurely } from '../support/network/listener.ts';
import {
  changeOf,
  clientOf,
  key,
  never,
  startHarness,
  stopTimers,
} from '../support/harness/upstream-harness.ts';

const unreachable = { outcome: 'not_applied', reason: 'unreachable', status: null, retryAfterMs: null };
const ambiguous = { outcome: 'ambiguous', status: null, retryAfterMs: null };

test('a refused connection means that a change was not applied', async () => {
  await using scene = await startHarness();
  await scene.network.become({ kind: 'refuse' });
  const outcome = await scene.client.change(changeOf('p1', key, 'usage'), never());
  expect(outcome).toEqual({ ...unreachable, detail: 'connection refused' });
  await scene.network.become({ kind: 'pass' });
  expect(await scene.client.verify('p1', key, never())).toMatchObject({ outcome: 'applied' });
  expect(scene.server.ledger).toHaveLength(1);
});

test('an unknown host name means that a change was not applied', async () => {
  await using client = clientOf('http://upstream.invalid', { proxy: '' });
  expect(await client.change(changeOf('p1', key, 'usage'), never())).toEqual({
    ...unreachable,
    detail: expect.stringMatching(/^(?:host name unknown|name resolution failed)$/),
  });
});

test('a TLS handshake that does not finish means that a change was not applied', async () => {
  const time = stopTimers();
  const server = createServer();
  await using silent = await listen(server);
  await using client = clientOf(`https://localhost:${silent.port}`, { timeoutMs: 400 });
  const connected = once(server, 'connection');
  const asked = client.change(changeOf('p1', key, 'usage'), never());
  await connected;
  time.pass(400);
  expect(await asked).toEqual({ ...unreachable, detail: 'no connection in time' });
});

test('an untrusted certificate means that a change was not applied', async () => {
  await using stranger = await listenSecurely();
  await using client = clientOf(`https://localhost:${stranger.port}`);
  expect(await client.change(changeOf('p1', key, 'usage'), never())).toEqual({
    ...unreachable,
    detail: expect.stringContaining('self-signed certificate'),
  });
});

test('a trusted certificate of another host means that a change was not applied', async () => {
  await using stranger = await listenSecurely();
  await using client = clientOf(`https://127.0.0.1:${stranger.port}`, { ca: certificate });
  expect(await client.change(changeOf('p1', key, 'usage'), never())).toEqual({
    ...unreachable,
    detail: expect.stringContaining("does not match certificate's altnames"),
  });
});

test('a server without TLS means that a change was not applied', async () => {
  await using scene = await startHarness();
  await using client = clientOf(scene.server.url.replace('http:', 'https:'));
  expect(await client.change(changeOf('p1', key, 'usage'), never())).toMatchObject(unreachable);
  expect(scene.server.ledger).toEqual([]);
});

test('ca_file is trusted in addition to the default certificates', async () => {
  await using secure = await listenSecurely();
  await using client = clientOf(`https://localhost:${secure.port}`, { ca: certificate });
  const outcome = await client.verify('p1', key, never());
  expect(outcome).toMatchObject({ reason: 'missing', detail: 'HTTP 404: over TLS' });
});

const port = 9;

test('connect_to changes the address of the upstream, but not its name', async () => {
  await using scene = await startHarness();
  const connectTo = { host: '127.0.0.1', port: scene.server.port };
  await using client = clientOf('http://store.invalid/shop', { connectTo });
  expect(await client.verify('p1', key, never())).toMatchObject({ outcome: 'not_applied', status: 404 });
  expect(scene.server.ledger[0]).toMatchObject({
    path: '/shop/api/v2/license/verify',
    headers: { host: 'store.invalid' },
  });
});

test('connect_to without a port keeps the port of the upstream', async () => {
  await using scene = await startHarness();
  const connectTo = { host: 'localhost', port: null };
  await using client = clientOf(`http://store.invalid:${scene.server.port}`, { connectTo });
  expect(await client.verify('p1', key, never())).toMatchObject({ outcome: 'applied' });
});

test('an upstream that is reached by connect_to must show its own certificate', async () => {
  await using secure = await listenSecurely();
  const settings = { ca: certificate, connectTo: { host: '127.0.0.1', port: secure.port } };
  await using client = clientOf(`https://localhost:${port}`, settings);
  expect(await client.verify('p1', key, never())).toMatchObject({ detail: 'HTTP 404: over TLS' });
  for (const other of ['https://store.invalid', 'https://203.0.113.7']) {
    await using stranger = clientOf(other, settings);
    expect(await stranger.change(changeOf('p1', key, 'usage'), never())).toMatchObject({
      ...unreachable,
      detail: expect.stringContaining("does not match certificate's altnames"),
    });
  }
});

test('connect_to does not use the proxy of the environment', async () => {
  await using scene = await startHarness();
  vi.stubEnv('http_proxy', `http://127.0.0.1:${port}`);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  const connectTo = { host: '127.0.0.1', port: scene.server.port };
  await using client = clientOf('http://store.invalid', { connectTo });
  expect(await client.verify('p1', key, never())).toMatchObject({ outcome: 'applied' });
});

test('a reset response leaves it open whether a change was applied', async () => {
  await using scene = await startHarness();
  await scene.network.become({ kind: 'reset_answer' });
  const outcome = await scene.client.change(changeOf('p1', key, 'usage'), never());
  expect(outcome).toEqual({ ...ambiguous, detail: 'connection reset' });
  expect(scene.server.countsOf(key).net).toBe(1);
});

test('a connection that is reset at once is ambiguous or not applied', async () => {
  await using scene = await startHarness();
  await scene.network.become({ kind: 'reset_on_connect' });
  const outcome = await scene.client.change(changeOf('p1', key, 'usage'), never());
  expect(['ambiguous', 'not_applied']).toContain(outcome.outcome);
  expect(scene.server.ledger).toEqual([]);
});

test.each([5, 40, 200])(
  'a response that is cut after %i bytes leaves it open whether a change was applied',
  async (afterBytes) => {
    await using scene = await startHarness();
    await scene.network.become({ kind: 'cut_answer', afterBytes });
    const outcome = await scene.client.change(changeOf('p1', key, 'usage'), never());
    expect(outcome).toMatchObject(ambiguous);
    expect(scene.server.countsOf(key).net).toBe(1);
  },
);

test.each(['is cut', 'does not end'])(
  'the Retry-After of a response counts even if its body %s',
  async (how) => {
    const head = 'HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 100\r\n\r\n';
    const time = stopTimers();
    const written = Promise.withResolvers<void>();
    const server = createServer((socket) => {
      socket.once('data', () => {
        socket.write(`${head}<html>`, () => written.resolve());
        if (how === 'is cut') socket.end();
      });
      socket.on('error', () => undefined);
    });
    await using upstream = await listen(server);
    await using client = clientOf(`http://127.0.0.1:${upstream.port}`, { timeoutMs: 2_000 });
    const asked = client.change(changeOf('p1', key, 'usage'), never());
    await written.promise;
    // The client reads the written bytes some turns of the event loop later.
    for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    time.pass(2_000);
    expect(await asked).toMatchObject({ ...ambiguous, retryAfterMs: 5_000 });
  },
);

test.each(['half_open', 'blackhole'] as const)('a %s connection ends at the timeout', async (kind) => {
  const time = stopTimers();
  await using scene = await startHarness({ timeoutMs: 300 });
  const { client, network, server } = scene;
  await client.verify('p1', key, never());
  await network.become({ kind });
  let isKnown = false;
  const asked = client.change(changeOf('p1', key, 'usage'), never()).finally(() => (isKnown = true));
  if (kind === 'half_open') await server.until(() => server.ledger[1]?.answered === 'sent');
  else while (network.swallowed === 0) await setImmediate();
  time.pass(299);
  await setImmediate();
  expect(isKnown).toBe(false);
  time.pass(1);
  expect(await asked).toEqual({ ...ambiguous, detail: 'no complete response in time' });
  expect(server.countsOf(key).net).toBe(kind === 'half_open' ? 1 : 0);
});

test('after one idle connection was found dead, no other idle connection is used', async () => {
  const time = stopTimers();
  await using scene = await startHarness({ timeoutMs: 500 });
  const { client, network, server } = scene;
  const four = Array.from({ length: 4 }, () => client.verify('p1', key, never()));
  await Promise.all(four);
  expect(network.connections).toBe(4);
  await network.become({ kind: 'half_open' });
  const inDoubt = client.change(changeOf('p1', key, 'usage'), never());
  await server.until(() => server.countsOf(key).usages === 1);
  time.pass(500);
  expect(await inDoubt).toMatchObject(ambiguous);
  await network.become({ kind: 'pass' });
  const outcomes = await Promise.all(
    Array.from({ length: 4 }, () => client.change(changeOf('p1', key, 'usage'), never())),
  );
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(Array.from({ length: 4 }, () => 'applied'));
  expect(server.countsOf(key)).toMatchObject({ usages: 5 });
});

test('an ambiguous response does not disturb other running requests', async () => {
  await using scene = await startHarness();
  const { client, server } = scene;
  server.fault = firstFew(1, hang());
  const caller = new AbortController();
  const slow = client.verify('p1', key, caller.signal);
  await server.until(() => server.ledger.length === 1);
  server.fault = every(delayResponse(200));
  const quick = client.change(changeOf('p1', key, 'usage'), never());
  await server.until(() => server.ledger.length === 2);
  caller.abort();
  expect(await slow).toMatchObject({ outcome: 'ambiguous' });
  expect(await quick).toMatchObject({ outcome: 'applied', value: { uses: 1 } });
});
