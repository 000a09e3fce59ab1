import { expect, test } from 'vitest';
import { adminToken, authorityStatus, openApp, serverOf } from '../../support/app/http-app.ts';

test.each([
  [200, { url: '/livez' }],
  [200, { url: '/admin/v1/products', headers: { authorization: `Bearer ${adminToken}` } }],
  [401, { url: '/admin/v1/products' }],
  [403, { url: '/livez', headers: { host: 'elsewhere.example' } }],
  [404, { url: '/nowhere' }],
  [400, { url: '/%' }],
] as const)('every response names the instance that sent it: %i of %j', async (status, request) => {
  await using opened = await openApp();
  const answer = await serverOf(opened.app).inject({ method: 'GET', ...request });
  expect(answer.statusCode).toBe(status);
  expect(answer.headers['latchkey-instance']).toBe(authorityStatus.instance);
});

test.each([
  ['GET', '/api/v2/license/verify?license_key=A'],
  ['PUT', '/api/v2/license/usage'],
  ['GET', '/livez'],
] as const)('a request that the same instance has sent is refused at once: %s %s', async (method, url) => {
  await using opened = await openApp();
  const headers = { 'latchkey-instance': authorityStatus.instance };
  const answer = await serverOf(opened.app).inject({ method, url, headers });
  expect(answer.statusCode).toBe(508);
  expect(answer.json()).toMatchObject({ code: 'loop_detected' });
  expect(answer.headers['latchkey-instance']).toBe(authorityStatus.instance);
});

test('a request of another instance is answered like any other', async () => {
  await using opened = await openApp();
  const headers = { 'latchkey-instance': 'another' };
  const answer = await serverOf(opened.app).inject({ method: 'GET', url: '/livez', headers });
  expect(answer.statusCode).toBe(200);
});
