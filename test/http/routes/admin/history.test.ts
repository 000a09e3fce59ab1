import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { expect, test } from 'vitest';
import { adminToken, openApp, serverOf } from '../../../support/app/http-app.ts';

const admin = { authorization: `Bearer ${adminToken}` };
const secret = 'a-product-secret';

async function sell(server: FastifyInstance, license_key: string): Promise<string> {
  const post = (url: string, payload: object) =>
    server.inject({ method: 'POST', url: `/admin/v1/${url}`, headers: admin, payload });
  await post('products', { name: 'P', product_key: 'P', secret });
  const sold = await post('purchases', { product_key: 'P', buyer_email: 'b@example.com', license_key });
  return sold.json<{ data: { purchase_id: string } }>().data.purchase_id;
}

function history(server: FastifyInstance, key: string, query = ''): Promise<LightMyRequestResponse> {
  const url = `/admin/v1/licenses/${encodeURIComponent(key)}/history${query}`;
  return server.inject({ url, headers: admin });
}

test('the history of a license lists each change with its user, and uses and state before and after', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  const key = 'a key / with? everything%';
  const purchase = await sell(server, key);
  const change = (trigger: string, headers: object) =>
    server.inject({
      method: 'PUT',
      url: `/api/v2/license/${trigger}`,
      headers: { ...headers },
      payload: { license_key: key },
    });
  await change('decrease', admin);
  await change('enable', admin);
  await change('usage', { 'product-secret-key': secret });
  await change('disable', admin);
  await server.inject({ method: 'POST', url: `/admin/v1/purchases/${purchase}/refund`, headers: admin });
  await server.inject({ method: 'POST', url: `/admin/v1/purchases/${purchase}/refund`, headers: admin });
  const listed = await history(server, ` ${key} `);
  expect(listed.headers['x-total-count']).toBe('3');
  const [unused, used, off] = [
    { uses: 0, enabled: true },
    { uses: 1, enabled: true },
    { uses: 1, enabled: false },
  ];
  const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/);
  expect(listed.json()).toEqual({
    data: {
      changes: [
        { at, change: 'refund', credential: 'token:admin', before: off, after: off },
        { at, change: 'disable', credential: 'token:admin', before: used, after: off },
        { at, change: 'usage', credential: 'product:P', before: unused, after: used },
      ],
    },
  });
  expect(listed.body).not.toContain(secret);
  const second = await history(server, key, '?limit=1&offset=1');
  expect(second.json()).toMatchObject({ data: { changes: [{ change: 'disable' }] } });
  expect(second.headers['link']).toContain('?limit=1&cursor=');
});

test('a change older than history.keep is not listed, whether or not it is already removed', async () => {
  let since = 0;
  await using opened = await openApp({ historySince: () => since });
  const server = serverOf(opened.app);
  await sell(server, 'KEY');
  const use = () =>
    server.inject({
      method: 'PUT',
      url: '/api/v2/license/usage',
      headers: { 'product-secret-key': secret },
      payload: { license_key: 'KEY' },
    });
  await use();
  await use();
  expect((await history(server, 'KEY')).headers['x-total-count']).toBe('2');
  since = Date.now() + 1;
  const forgotten = await history(server, 'KEY');
  expect([forgotten.headers['x-total-count'], forgotten.json()]).toEqual(['0', { data: { changes: [] } }]);
});

test('the history of an unknown license is not found', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  for (const key of ['NO-SUCH-KEY', ' ', 'x'.repeat(101)]) {
    const answer = await history(server, key);
    expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([404, 'license_not_found']);
  }
});
