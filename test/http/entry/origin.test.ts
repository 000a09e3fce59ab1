import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dialects } from '../../support/stores/dialects.ts';
import { routesOf } from '../../../src/http/routes/all.ts';
import { adminToken, apiKey, limits, openApp, serverOf, type TestApp } from '../../support/app/http-app.ts';
import { serveApp } from '../../support/app/http-served.ts';
import { KeptConnection } from '../../support/network/kept-connection.ts';
import { httpClient } from '../../support/network/raw-http.ts';

const page = 'https://app.example.com';
const extension = 'chrome-extension://abcdefghijklmnop';
const admin = { authorization: `Bearer ${adminToken}` };

let opened: TestApp;
let server: FastifyInstance;
beforeAll(async () => {
  opened = await openApp({ dialect: dialects.payhip });
  server = serverOf(opened.app, { allowedOrigins: [page, extension] });
});
afterAll(async () => {
  await server.close();
  await opened[Symbol.asyncDispose]();
});

type Got = { status: number; cors: Record<string, unknown>; vary: unknown };

async function send(method: string, url: string, headers: object): Promise<Got> {
  const answer = await server.inject({ method: method as 'GET', url, headers: { ...headers } });
  const cors = Object.entries(answer.headers).filter(([name]) => name.startsWith('access-control-'));
  return { status: answer.statusCode, cors: Object.fromEntries(cors), vary: answer.headers['vary'] };
}

const vary = 'service-api-key, payhip-api-key, product-secret-key, authorization, accept, origin';
const coupons = '/api/v2/coupons';
const preflightOf = (origin: string, method = 'GET'): object => ({
  origin,
  'access-control-request-method': method,
  'access-control-request-headers': 'service-api-key',
});

describe('a page of an allowed origin', () => {
  test.each([page, extension])(
    'a page of the allowed origin %s is answered with its own name, and may read the headers',
    async (origin) => {
      const got = await send('GET', coupons, { origin, referer: `${origin}/x`, 'service-api-key': apiKey });
      expect(got).toMatchObject({ status: 200, vary });
      expect(got.cors).toEqual({
        'access-control-allow-origin': origin,
        'access-control-expose-headers': expect.any(String),
      });
      expect(String(got.cors['access-control-expose-headers']).split(', ').toSorted()).toEqual([
        'Age',
        'Cache-Status',
        'Latchkey-Confirmed-At',
        'Latchkey-Freshness',
        'Latchkey-Grace-Until',
        'Latchkey-Instance',
        'Latchkey-Left-Out',
        'Latchkey-Pending',
        'Link',
        'Location',
        'Retry-After',
        'X-Request-Id',
        'X-Total-Count',
      ]);
    },
  );

  test('a page of an allowed origin can read error responses', async () => {
    for (const [headers, status] of [
      [{}, 401],
      [{ 'service-api-key': 'wrong' }, 401],
      [{ 'service-api-key': apiKey, authorization: 'Bearer a' }, 400],
    ] as const) {
      const got = await send('GET', coupons, { origin: page, ...headers });
      expect([got.status, got.cors['access-control-allow-origin']]).toEqual([status, page]);
    }
  });

  test('a page of an allowed origin gets preflights for all of /api and /agent, with the methods of the path, without a credential', async () => {
    const open = (await routesOf(dialects.payhip)).filter(({ path }) => /^\/(?:api|agent)\//.test(path));
    expect(new Set(open.map(({ path }) => path.split('/', 2)[1]))).toEqual(new Set(['api', 'agent']));
    for (const { method, path } of open) {
      const got = await send('OPTIONS', path.replaceAll(/:\w+/g, '1'), preflightOf(page, method));
      expect([path, got.status, got.cors['access-control-allow-origin']]).toEqual([path, 204, page]);
      expect(String(got.cors['access-control-allow-methods']).split(', ')).toContain(method);
      const allowed = String(got.cors['access-control-allow-headers']).split(', ');
      expect(allowed).toEqual(
        expect.arrayContaining(['product-secret-key', 'service-api-key', 'payhip-api-key', 'Content-Type']),
      );
      expect(allowed).toEqual(expect.arrayContaining(['Idempotency-Key', 'Prefer', 'X-Request-Id']));
      expect(got.cors['access-control-max-age']).toBe('600');
      expect(got.cors).not.toHaveProperty('access-control-allow-credentials');
    }
  });

  test('a page of an allowed origin cannot use admin, status, metrics or unknown paths in any spelling', async () => {
    const shut = (await routesOf(dialects.payhip)).filter(({ path }) => !/^\/(?:api|agent)\//.test(path));
    const paths = shut.map(({ method, path }) => [method, path.replaceAll(/:\w+/g, '1')] as const);
    const written = [
      ...paths,
      ...paths.map(([method, path]) => [method, `/${path}`] as const),
      ...paths.map(([method, path]) => [method, `${path}/`] as const),
      ['GET', '//admin//v1//tokens//'],
      ['GET', '/api/../admin/v1/tokens'],
      ['GET', '/api/v2/../../admin/v1/tokens'],
      ['GET', '/api%2F..%2Fadmin/v1/tokens'],
      ['GET', '/api/v2/%2e%2e/%2e%2e/admin/v1/tokens'],
      ['GET', '/%61dmin/v1/tokens'],
      ['GET', '/agent/../admin/v1/tokens'],
      ['GET', '/api/%zz'],
      ['GET', '/api/v2/none'],
      ['GET', '/sync/v1'],
      ['POST', '/sync/v1/operations'],
    ] as const;
    for (const [method, path] of written) {
      for (const [how, headers] of [
        [method, { origin: page, ...admin }],
        ['OPTIONS', preflightOf(page, method)],
      ] as const) {
        const got = await send(how, path, headers);
        expect([how, path, got.status, got.cors]).toEqual([how, path, 403, {}]);
      }
    }
  });
});

describe('a page of any other origin', () => {
  test.each([
    'null',
    '*',
    'https://evil.example',
    'https://app.example.com.evil.example',
    'https://app.example.com:444',
    'http://app.example.com',
    'https://APP.example.com',
    'https://app.example.com/',
    `${page} ${page}`,
    `${page}, https://evil.example`,
    'chrome-extension://other',
    '',
  ])('a page of the origin %j is refused, and learns nothing', async (origin) => {
    for (const [method, headers] of [
      ['GET', { origin, 'service-api-key': apiKey }],
      ['OPTIONS', preflightOf(origin)],
    ] as const) {
      const got = await send(method, coupons, headers);
      expect([got.status, got.cors]).toEqual([403, {}]);
    }
  });

  test('a page that only sends a Referer is refused, even if its origin is allowed', async () => {
    const got = await send('GET', coupons, { referer: `${page}/`, 'service-api-key': apiKey });
    expect([got.status, got.cors]).toEqual([403, {}]);
  });

  test('a page that sends an allowed origin together with another is refused', async () => {
    for (const origin of [
      [page, page],
      [page, 'https://evil.example'],
      ['https://evil.example', page],
    ]) {
      const raw = { origin, 'service-api-key': apiKey };
      const got = await send('GET', coupons, raw);
      expect([got.status, got.cors]).toEqual([403, {}]);
    }
  });
});

test('the origin null is accepted if it is allowed', async () => {
  const lenient = serverOf(opened.app, { allowedOrigins: ['null'] });
  const headers = { origin: 'null', 'service-api-key': apiKey };
  const answer = await lenient.inject({ url: coupons, headers });
  expect([answer.statusCode, answer.headers['access-control-allow-origin']]).toEqual([200, 'null']);
  await lenient.close();
});

test('a program without an origin is answered as usual, with a Vary header for caches', async () => {
  expect(await send('GET', coupons, { 'service-api-key': apiKey })).toEqual({
    status: 200,
    cors: {},
    vary,
  });
  expect(await send('DELETE', coupons, {})).toEqual({ status: 405, cors: {}, vary });
});

test('OPTIONS from a program is a method that is not allowed', async () => {
  for (const headers of [{}, { 'access-control-request-method': 'GET' }, { origin: page }]) {
    expect((await send('OPTIONS', coupons, headers)).status).toBe(405);
  }
});

test('a repeated verify has the CORS header of its own origin, and none without an Origin', async () => {
  const allowedOrigins = [page, extension];
  await using served = await serveApp({ cachesResponses: true }, { limits, allowedOrigins });
  await using http = httpClient(served.listeners.tcp);
  const secret = 'a-secret-of-the-product';
  const product = { name: 'P', product_key: 'P', secret };
  await http.post('/admin/v1/products', { headers: admin, json: product });
  const purchase = { product_key: 'P', buyer_email: 'a@example.com', license_key: 'KEY' };
  await http.post('/admin/v1/purchases', { headers: admin, json: purchase });
  await using kept = new KeptConnection(served.listeners.tcp);
  for (const origin of [page, extension, null, page]) {
    const carriers = `product-secret-key: ${secret}\r\n${origin === null ? '' : `Origin: ${origin}\r\n`}`;
    const bytes = `GET /api/v2/license/verify?license_key=KEY HTTP/1.1\r\nHost: localhost\r\n${carriers}\r\n`;
    for (let time = 0; time < 4; time += 1) {
      const told = /^access-control-allow-origin: (.*)\r$/im.exec(await kept.send(bytes))?.[1];
      expect(told ?? null).toBe(origin);
    }
  }
});
