import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dialects } from '../../support/stores/dialects.ts';
import { routesOf } from '../../../src/http/routes/all.ts';
import { adminToken, apiKey, openApp, serverOf, type TestApp } from '../../support/app/http-app.ts';

let opened: TestApp;
let server: FastifyInstance;
beforeAll(async () => {
  opened = await openApp({ dialect: dialects.payhip });
  server = serverOf(opened.app);
});
afterAll(async () => {
  await server.close();
  await opened[Symbol.asyncDispose]();
});

test.each([
  ['PUT', '/admin/v1/coupons/export', 'GET, HEAD'],
  ['DELETE', '/admin/v1/coupons/import', 'POST'],
  ['GET', '/admin/v1/purchases/import', 'POST'],
] as const)('%s %s is not a request for an object with such an id', async (method, url, allowed) => {
  const answer = await server.inject({ method, url, headers: { authorization: `Bearer ${adminToken}` } });
  expect([answer.statusCode, answer.headers['allow']]).toEqual([405, allowed]);
});

test.each(['/api/v2/coupons/:id', '/admin/v1/products/:id', '/agent/v1/redemptions/:order'])(
  'GET %s, as the reference writes it, requests an object with such an id',
  async (url) => {
    const answer = await server.inject({ url, headers: { authorization: `Bearer ${adminToken}` } });
    expect(answer.statusCode).toBe(404);
  },
);

/** Other spellings of a path that lead to the same route. */
function spellings(path: string): string[] {
  return [`${path}/`, `/${path}`, path.replaceAll('/', '//'), `${path}///`];
}

const routes = (await routesOf(dialects.payhip)).map(
  ({ method, path }) => [method, path.replaceAll(/:\w+/g, 'nothing')] as const,
);

test.each(routes)(
  '%s %s refuses the same callers if the path has additional slashes',
  async (method, path) => {
    const ask = async (url: string, headers: object): Promise<[number, string | undefined]> => {
      const answer = await server.inject({ method, url, headers: { ...headers } });
      return [answer.statusCode, answer.headers['content-type']?.toString()];
    };
    for (const headers of [
      {},
      { authorization: 'Bearer wrong' },
      { 'service-api-key': apiKey, 'product-secret-key': 'wrong' },
      { host: 'evil.example', authorization: `Bearer ${adminToken}` },
      { origin: 'https://evil.example', authorization: `Bearer ${adminToken}` },
    ]) {
      const plain = await ask(path, headers);
      for (const url of spellings(path)) expect([url, await ask(url, headers)]).toEqual([url, plain]);
    }
  },
);

test('a path with additional slashes is the same list, links to the plain path, and counts as the same idempotent request', async () => {
  const headers = { 'service-api-key': apiKey, 'idempotency-key': 'one' };
  const payload = { coupon_type: 'multi', amount_off: 5, code: 'ONE' };
  const first = await server.inject({ method: 'POST', url: '/api/v2/coupons', headers, payload });
  const again = await server.inject({ method: 'POST', url: '//api/v2//coupons/', headers, payload });
  expect([again.statusCode, again.body]).toEqual([201, first.body]);
  await server.inject({
    method: 'POST',
    url: '/api/v2/coupons/',
    headers: { 'service-api-key': apiKey },
    payload: { ...payload, code: 'TWO' },
  });
  const list = await server.inject({
    url: '/api//v2/coupons/?limit=1',
    headers: { 'service-api-key': apiKey },
  });
  expect(list.headers['link']).toMatch(/^<\/api\/v2\/coupons\?limit=1&cursor=[\w-]+>; rel="next"$/);
});

test('a wrong method on a path with additional slashes gets the methods of the path', async () => {
  const answer = await server.inject({ method: 'DELETE', url: '/api/v2//coupons/' });
  expect([answer.statusCode, answer.headers['allow']]).toEqual([405, 'POST, GET, HEAD']);
});

test('an encoded slash does not separate segments', async () => {
  for (const url of [
    '/api%2Fv2/coupons',
    '/api/v2%2Fcoupons',
    '/%2Fadmin/v1/tokens',
    '/admin%2fv1%2ftokens',
  ]) {
    const answer = await server.inject({ url, headers: { authorization: `Bearer ${adminToken}` } });
    expect([url, answer.statusCode]).toEqual([url, 404]);
  }
});
