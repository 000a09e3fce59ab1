import { expect, test } from 'vitest';
import { adminToken, authorityStatus, openApp, serverOf } from '../support/http-app.ts';

test.each([
  [200, { url: '/livez' }],
  [200, { url: '/admin/v1/products', headers: { authorization: `Bearer ${adminToken}` } }],
  [401, { url: '/admin/v1/products' }],
  [403, { url: '/livez', headers: { host: 'elsewhere.example' } }],
  [404, { url: '/nowhere' }],
  [400, { url: '/%' }],
] as const)('every answer says which instance gives it: %i of %j', async (status, request) => {
  await using opened = await openApp();
  const answer = await serverOf(opened.app).inject({ method: 'GET', ...request });
  expect(answer.statusCode).toBe(status);
  expect(answer.headers['latchkey-instance']).toBe(authorityStatus.instance);
});
