import type { LightMyRequestResponse } from 'fastify';
import { expect, test } from 'vitest';
import { codeOf, dataOf, openApp, type TestApp } from '../../../support/app/http-app.ts';

const secret = 'a-product-secret';

async function sell({ send }: TestApp, license_key: string): Promise<string> {
  await send('POST', 'products', { name: 'P', product_key: 'P', secret });
  const sale = { product_key: 'P', buyer_email: 'b@example.com', license_key };
  return (await dataOf<{ purchase_id: string }>(send('POST', 'purchases', sale))).purchase_id;
}

function history({ send }: TestApp, key: string, query = ''): Promise<LightMyRequestResponse> {
  return send('GET', `licenses/${encodeURIComponent(key)}/history${query}`);
}

test('the history of a license lists each change with its user, and uses and state before and after', async () => {
  await using opened = await openApp();
  const key = 'a key / with? everything%';
  const purchase = await sell(opened, key);
  const change = (trigger: string, headers?: object) =>
    opened.send('PUT', `/api/v2/license/${trigger}`, { license_key: key }, headers);
  await change('decrease');
  await change('enable');
  await change('usage', { 'product-secret-key': secret });
  await change('disable');
  await opened.send('POST', `purchases/${purchase}/refund`);
  await opened.send('POST', `purchases/${purchase}/refund`);
  const listed = await history(opened, ` ${key} `);
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
  const second = await history(opened, key, '?limit=1&offset=1');
  expect(second.json()).toMatchObject({ data: { changes: [{ change: 'disable' }] } });
  expect(second.headers['link']).toContain('?limit=1&cursor=');
});

test('a change older than history.keep is not listed, whether or not it is already removed', async () => {
  let since = 0;
  await using opened = await openApp({ historySince: () => since });
  await sell(opened, 'KEY');
  for (let use = 0; use < 2; use += 1)
    await opened.send('PUT', '/api/v2/license/usage', { license_key: 'KEY' });
  expect((await history(opened, 'KEY')).headers['x-total-count']).toBe('2');
  since = Date.now() + 1;
  const forgotten = await history(opened, 'KEY');
  expect([forgotten.headers['x-total-count'], forgotten.json()]).toEqual(['0', { data: { changes: [] } }]);
});

test('the history of an unknown license is not found', async () => {
  await using opened = await openApp();
  for (const key of ['NO-SUCH-KEY', ' ', 'x'.repeat(101)]) {
    const answer = await history(opened, key);
    expect([answer.statusCode, codeOf(answer)]).toEqual([404, 'license_not_found']);
  }
});
