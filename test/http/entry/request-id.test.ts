import { expect, test } from 'vitest';
import { licenseKeyFrom } from '../../../src/domain/license.ts';
import { adminToken, openApp, serverOf } from '../../support/app/http-app.ts';

const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

test.each([
  [200, { url: '/livez' }],
  [200, { url: '/admin/v1/products', headers: { authorization: `Bearer ${adminToken}` } }],
  [401, { url: '/admin/v1/products' }],
  [403, { url: '/livez', headers: { host: 'elsewhere.example' } }],
  [404, { url: '/nowhere' }],
  [400, { url: '/%' }],
] as const)('every response has its own request id: %i of %j', async (status, request) => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  const [first, second] = [
    await server.inject({ method: 'GET', ...request }),
    await server.inject({ method: 'GET', ...request }),
  ];
  expect(first.statusCode).toBe(status);
  expect(first.headers['x-request-id']).toMatch(uuid);
  expect(second.headers['x-request-id']).not.toBe(first.headers['x-request-id']);
});

test('a problem repeats the id of its request', async () => {
  await using opened = await openApp();
  const answer = await serverOf(opened.app).inject({ method: 'GET', url: '/nowhere' });
  expect(answer.json()).toMatchObject({ request_id: answer.headers['x-request-id'] });
});

test.each([
  'a',
  '7b0f4c1e-52f0-4b0e-9d2c-1f4b7f3f2f10',
  '01JADMZ5T3Q4W5E6R7T8Y9U0I1',
  'Root=1-67891233-abcdef012345678912345678',
  'cGF5bWVudA==',
  'a'.repeat(128),
])('the request id of a caller is kept: %s', async (id) => {
  await using opened = await openApp();
  const answer = await serverOf(opened.app).inject({
    method: 'GET',
    url: '/nowhere',
    headers: { 'x-request-id': id },
  });
  expect(answer.headers['x-request-id']).toBe(id);
  expect(answer.json()).toMatchObject({ request_id: id });
});

test.each([
  ['empty', ''],
  ['too long', 'a'.repeat(129)],
  ['with white space', 'one two'],
  ['sent twice', ['one', 'two']],
  ['not ASCII', 'é'],
  ['with quotes', '"id"'],
  ['a license key', licenseKeyFrom(new Uint8Array(20))],
  ['a text that contains a license key', `use-${licenseKeyFrom(new Uint8Array(20)).toLowerCase()}-1`],
] as const)('a malformed request id is replaced by a new one: %s', async (_, id) => {
  await using opened = await openApp();
  const answer = await serverOf(opened.app).inject({
    method: 'GET',
    url: '/livez',
    headers: { 'x-request-id': typeof id === 'string' ? id : [...id] },
  });
  expect(answer.statusCode).toBe(200);
  expect(answer.headers['x-request-id']).toMatch(uuid);
});
