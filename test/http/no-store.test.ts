import { expect, test } from 'vitest';
import type { App } from '../../src/http/app.ts';
import { dialects } from '../support/stores/dialects.ts';
import { Proxies } from '../../src/http/entry/client-address.ts';
import { routesOf } from '../../src/http/routes/all.ts';
import { adminToken, openApp, serverOf, silentMetrics } from '../support/app/http-app.ts';
import { serveApp } from '../support/app/http-served.ts';
import { secret } from '../support/harness/dialect-harness.ts';
import { KeptConnection } from '../support/network/kept-connection.ts';
import { httpClient, sendRaw } from '../support/network/raw-http.ts';

const operator = { authorization: `Bearer ${adminToken}` };

type Headers = Readonly<Record<string, unknown>>;

test.each(['specification', 'payhip'] as const)(
  'every route (%s) says to caches that they must not store its response or its refusal',
  async (name) => {
    const dialect = dialects[name];
    await using opened = await openApp({ dialect });
    const server = serverOf(opened.app);
    const wrong: string[] = [];
    for (const { method, path } of await routesOf(dialect)) {
      const url = path.replace(/:\w+/g, '1');
      for (const headers of [{}, operator, { host: 'evil.example' }]) {
        const answer = await server.inject({ method, url, headers });
        const { 'cache-control': cacheControl, vary } = answer.headers;
        const isRight = cacheControl === 'no-store' && String(vary).includes('product-secret-key');
        if (!isRight) wrong.push(`${method} ${url}: ${answer.statusCode} ${cacheControl} ${String(vary)}`);
      }
    }
    expect(wrong).toEqual([]);
  },
);

test('a response names all headers on which it depends', async () => {
  await using opened = await openApp({ dialect: dialects.payhip });
  const headerAliases = { apiKey: ['x-api-key'], productSecret: ['x-secret'] };
  const server = serverOf(opened.app, { headerAliases, allowedOrigins: ['https://shop.example'] });
  expect((await server.inject('/api/v2/coupons')).headers['vary']).toBe(
    'service-api-key, payhip-api-key, x-api-key, product-secret-key, x-secret, authorization, accept, origin',
  );
});

test.each([
  [
    'a path that does not exist',
    'GET /api/v2/nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
    404,
  ],
  [
    'a path that cannot be decoded',
    'GET /api/v2/%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
    400,
  ],
  [
    'a method that is not allowed',
    'DELETE /api/v2/coupons HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
    405,
  ],
  ['bytes that are not HTTP', 'nonsense\r\n\r\n', 400],
  ['too long headers', `GET /api/v2/coupons HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
])('the refusal of %s says the same', async (_, bytes, status) => {
  await using served = await serveApp();
  const answer = await sendRaw(served.listeners.tcp, bytes);
  expect(answer).toMatchObject({ status, headers: { 'cache-control': 'no-store' } });
});

test('a verify that the response cache answers says the same', async () => {
  let cached = 0;
  const metrics: App['metrics'] = { ...silentMetrics, countResponse: () => void (cached += 1) };
  await using served = await serveApp({ cachesResponses: true, metrics });
  await using http = httpClient(served.listeners.tcp);
  const product = { name: 'Editor', product_key: 'EDITOR', secret };
  await http.post('/admin/v1/products', { headers: operator, json: product });
  const purchase = { product_key: 'EDITOR', buyer_email: 'a@example.com', license_key: 'KEY-1' };
  await http.post('/admin/v1/purchases', { headers: operator, json: purchase });
  await using kept = new KeptConnection(served.listeners.tcp);
  const verify = `GET /api/v2/license/verify?license_key=KEY-1 HTTP/1.1\r\nHost: localhost\r\nproduct-secret-key: ${secret}\r\n\r\n`;
  for (let time = 0; time < 3; time += 1) {
    const response = (await kept.send(verify)).toLowerCase();
    expect(response).toContain('\r\ncache-control: no-store\r\n');
    expect(response).toContain('\r\nvary: service-api-key, product-secret-key, authorization, accept\r\n');
  }
  expect(cached).toBeGreaterThan(0);
});

test('the public listener says the same to devices and to stores', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app, { public: { proxies: new Proxies([]), issuerHost: () => null } });
  const headersOf = async (method: 'GET' | 'POST', url: string): Promise<Headers> =>
    (await server.inject({ method, url })).headers;
  for (const headers of [
    await headersOf('POST', '/lease/v1'),
    await headersOf('GET', '/lease/v1/keys'),
    await headersOf('POST', '/hooks/v1/payhip'),
    await headersOf('GET', '/livez'),
    await headersOf('GET', '/api/v2/coupons'),
  ]) {
    expect(headers).toMatchObject({ 'cache-control': 'no-store' });
    expect(headers).not.toHaveProperty('vary');
  }
});
