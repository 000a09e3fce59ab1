import { afterEach, expect, test, vi } from 'vitest';
import { certificate } from '../support/network/certificate.ts';
import { startForwarder } from '../support/network/forward-proxy.ts';
import { listenSecurely } from '../support/network/listener.ts';
import { changeOf, clientOf, key, never, startHarness } from '../support/harness/upstream-harness.ts';

const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'];

function environment(values: Readonly<Record<string, string>>): void {
  for (const name of names) vi.stubEnv(name, undefined);
  // Afterwards, because Windows ignores the case of a name.
  for (const [name, value] of Object.entries(values)) vi.stubEnv(name, value);
}

afterEach(() => {
  vi.unstubAllEnvs();
});

test('a proxy receives the absolute URI of an http upstream', async () => {
  await using scene = await startHarness();
  await using forwarder = await startForwarder(scene.server.port);
  await using client = clientOf('http://upstream.test/store', { proxy: forwarder.url });
  await client.verify('p1', key, never());
  expect(forwarder.asked).toEqual([`http://upstream.test/store/api/v2/license/verify?license_key=${key}`]);
  expect(scene.server.ledger[0]?.headers['product-secret-key']).toBe('secret-1');
});

test('a proxy tunnels to an https upstream', async () => {
  await using secure = await listenSecurely();
  await using forwarder = await startForwarder(secure.port);
  await using client = clientOf('https://localhost', { proxy: forwarder.url, ca: certificate });
  expect(await client.verify('p1', key, never())).toMatchObject({ detail: 'HTTP 404: over TLS' });
  expect(forwarder.asked).toEqual(['CONNECT localhost:443']);
});

test.each([403, 407, 502])(
  'a proxy that refuses the tunnel with %i means that a change was not applied',
  async (status) => {
    await using forwarder = await startForwarder(1, status);
    await using client = clientOf('https://upstream.test', { proxy: forwarder.url });
    expect(await client.change(changeOf('p1', key, 'usage'), never())).toEqual({
      outcome: 'not_applied',
      reason: 'unreachable',
      status: null,
      detail: expect.stringContaining(`Proxy response (${status})`),
      retryAfterMs: null,
    });
  },
);

test('an unavailable proxy means that a change was not applied', async () => {
  await using client = clientOf('http://upstream.test', { proxy: 'http://127.0.0.1:1' });
  expect(await client.change(changeOf('p1', key, 'usage'), never())).toMatchObject({
    outcome: 'not_applied',
    detail: 'connection refused',
  });
});

test('the environment names the proxy if the configuration does not', async () => {
  await using scene = await startHarness();
  await using forwarder = await startForwarder(scene.server.port);
  environment({ HTTP_PROXY: forwarder.url });
  await using client = clientOf('http://upstream.test');
  expect(await client.verify('p1', key, never())).toMatchObject({ outcome: 'applied' });
  expect(forwarder.asked).toHaveLength(1);
});

test('NO_PROXY lists the upstreams that are called without the proxy', async () => {
  await using forwarder = await startForwarder(1);
  environment({ HTTP_PROXY: forwarder.url, NO_PROXY: '.invalid' });
  await using client = clientOf('http://upstream.invalid');
  expect(await client.verify('p1', key, never())).toMatchObject({ reason: 'unreachable' });
  expect(forwarder.asked).toEqual([]);
});

test('an upstream on this machine is called without the proxy of the environment', async () => {
  environment({ HTTP_PROXY: 'http://127.0.0.1:1' });
  await using scene = await startHarness();
  expect(await scene.client.verify('p1', key, never())).toMatchObject({ outcome: 'applied' });
});

test('an invalid proxy URL in the environment means that a change was not applied', async () => {
  environment({ HTTP_PROXY: 'proxy.example:3128' });
  await using client = clientOf('http://upstream.test');
  for (let time = 0; time < 2; time += 1) {
    expect(await client.change(changeOf('p1', key, 'usage'), never())).toMatchObject({
      outcome: 'not_applied',
      reason: 'unreachable',
      detail: 'HTTP_PROXY is not the URL of a proxy',
    });
  }
});

test('after a failure the proxy in the environment is read again for the next request', async () => {
  environment({ HTTP_PROXY: 'proxy.example:3128' });
  await using scene = await startHarness();
  await using forwarder = await startForwarder(scene.server.port);
  await using client = clientOf('http://upstream.test');
  expect(await client.verify('p1', key, never())).toMatchObject({ reason: 'unreachable' });
  environment({ HTTP_PROXY: forwarder.url });
  expect(await client.verify('p1', key, never())).toMatchObject({ outcome: 'applied' });
});

test('the proxy of the configuration replaces the proxy of the environment', async () => {
  await using scene = await startHarness();
  await using forwarder = await startForwarder(scene.server.port);
  environment({ HTTP_PROXY: 'http://127.0.0.1:1', NO_PROXY: '*' });
  await using client = clientOf('http://upstream.test', { proxy: forwarder.url });
  expect(await client.verify('p1', key, never())).toMatchObject({ outcome: 'applied' });
});
