import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LightMyRequestResponse } from 'fastify';
import { codeOf, dataOf, openApp, type TestApp } from '../../../support/app/http-app.ts';

type Purchase = { purchase_id: string; refunded_at: string | null; license: { license_key: string } };

let opened: TestApp;
beforeAll(async () => {
  opened = await openApp();
  for (const key of ['ONE', 'TWO']) await send('POST', 'products', { name: key, product_key: key });
});
afterAll(() => opened[Symbol.asyncDispose]());

const send: TestApp['send'] = (...call) => opened.send(...call);

async function sell(product: string, more: object = {}): Promise<Purchase> {
  const body = { product_key: product, buyer_email: 'buyer@example.com', ...more };
  return await dataOf(send('POST', 'purchases', body));
}

async function keysOf(query: string): Promise<string[]> {
  const answer = await send('GET', `purchases?limit=100&${query}`);
  expect(answer.statusCode).toBe(200);
  const { purchases } = await dataOf<{ purchases: Purchase[] }>(answer);
  expect(answer.headers['x-total-count']).toBe(String(purchases.length));
  return purchases.map(({ license }) => license.license_key);
}

test('purchases are found by license key, buyer, product, date and refund, the latest first', async () => {
  const at = (day: number): string => `2025-03-0${day}T12:00:00+00:00`;
  await sell('ONE', { license_key: 'K1', date: at(1) });
  const second = await sell('ONE', { license_key: 'K2', date: at(2), buyer_email: 'Ann.O@Example.com' });
  await sell('TWO', { license_key: 'K3', date: at(3) });
  await send('POST', `purchases/${second.purchase_id}/refund`);
  expect(await keysOf('')).toEqual(['K3', 'K2', 'K1']);
  expect(await keysOf('license_key=K2')).toEqual(['K2']);
  expect(await keysOf('license_key=none')).toEqual([]);
  expect(await keysOf(`license_key=${'x'.repeat(101)}`)).toEqual([]);
  expect(await keysOf('buyer_email=ann.o%40example.COM')).toEqual(['K2']);
  expect(await keysOf('product_key=ONE')).toEqual(['K2', 'K1']);
  expect(await keysOf('since=2025-03-02T12:00:00Z')).toEqual(['K3', 'K2']);
  expect(await keysOf('until=2025-03-02T12:00:00Z')).toEqual(['K2', 'K1']);
  expect(await keysOf('since=2025-03-02T00:00:00Z&until=2025-03-02T23:59:59Z')).toEqual(['K2']);
  expect(await keysOf('refunded=true')).toEqual(['K2']);
  expect(await keysOf('refunded=false&buyer_email=buyer%40example.com&product_key=TWO')).toEqual(['K3']);
  const page = await send('GET', 'purchases?limit=2');
  expect(page.headers['link']).toMatch(/^<\/admin\/v1\/purchases\?limit=2&cursor=[\w-]+>; rel="next"$/);
  expect((await send('GET', 'purchases?limit=3')).headers).not.toHaveProperty('link');
  expect((await send('GET', 'purchases?since=2025-03-02')).statusCode).toBe(422);
});

test('a license key that the request names is never replaced, whatever its characters', async () => {
  const given = '😀'.repeat(100);
  const { license } = await sell('ONE', { license_key: given });
  expect(license.license_key).toBe(given);
  expect(await keysOf(`license_key=${encodeURIComponent(given)}`)).toEqual([given]);
});

test('a purchase in the second that `until` names is found', async () => {
  const { license } = await sell('ONE');
  const listed = await send('GET', `purchases?license_key=${license.license_key}`);
  const [{ date } = { date: '' }] = (await dataOf<{ purchases: { date: string }[] }>(listed)).purchases;
  const until = encodeURIComponent(date);
  expect(await keysOf(`license_key=${license.license_key}&until=${until}`)).toEqual([license.license_key]);
});

test('a refund is shown in the purchase and in the list of licenses, but not in the API of the specification', async () => {
  const { purchase_id: id, license } = await sell('ONE', { license_key: 'KR' });
  const shown = async (): Promise<unknown> => (await send('GET', `purchases/${id}`)).json();
  expect(await shown()).toMatchObject({ data: { purchase_id: id, refunded: false, refunded_at: null } });
  await send('POST', `purchases/${id}/refund`);
  const refundedAt = expect.stringMatching(/^\d{4}-.*\+00:00$/) as string;
  expect(await shown()).toMatchObject({ data: { refunded: true, refunded_at: refundedAt } });
  expect((await send('GET', 'licenses?license_key=KR')).json()).toEqual({
    data: {
      licenses: [
        {
          ...license,
          enabled: false,
          purchase_id: id,
          refunded_at: refundedAt,
          state: 'refunded',
          freshness: null,
          confirmed_at: null,
          pending: null,
          missing_since: null,
        },
      ],
    },
  });
  const verified = await send('GET', '/api/v2/license/verify?license_key=KR');
  expect(verified.json()).toEqual({ data: { ...license, enabled: false } });
  expect(codeOf(await send('GET', 'purchases/none'))).toBe('purchase_not_found');
});

test.each(['x', 'a@b@c', 'two words@example.com', '<b@example.com>', '@example.com', 'b@', 'b@-x.com'])(
  '%s is not accepted as an e-mail address',
  async (buyer) => {
    const answer = await send('POST', 'purchases', { product_key: 'ONE', buyer_email: buyer });
    expect([answer.statusCode, answer.json()]).toMatchObject([
      422,
      { errors: [{ parameter: 'buyer_email', code: 'not_an_email' }] },
    ]);
  },
);

test.each(["o'neil+shop@sub.example.co.uk", 'A.B_c-d!#$%&*@EXAMPLE.com', '  spaced@example.com '])(
  '%s is accepted as an e-mail address',
  async (buyer) => {
    const { license } = await sell('ONE', { buyer_email: buyer });
    expect(license).toMatchObject({ buyer_email: buyer.trim() });
  },
);

test('an archived product is no longer sold, and its license keys stay valid', async () => {
  const { license } = await sell('TWO');
  const put = (archived: boolean): Promise<LightMyRequestResponse> =>
    send('PUT', 'products/TWO', { name: 'Second', recurring: false, archived });
  expect((await put(true)).json()).toMatchObject({ data: { name: 'Second', archived: true } });
  const body = { product_key: 'TWO', buyer_email: 'b@example.com' };
  const refused = await send('POST', 'purchases', body);
  expect([refused.statusCode, codeOf(refused)]).toEqual([409, 'product_archived']);
  const taken = await send('POST', 'purchases', { ...body, date: '2020-01-01T00:00:00Z' });
  expect(taken.statusCode).toBe(201);
  const used = await send('PUT', '/api/v2/license/usage', { license_key: license.license_key });
  expect(used.json()).toMatchObject({ data: { uses: 1, enabled: true } });
  const names = async (query: string): Promise<unknown> =>
    (await dataOf<{ products: { product_key: string }[] }>(send('GET', `products?${query}`))).products.map(
      ({ product_key: key }) => key,
    );
  expect([await names('archived=true'), await names('archived=false')]).toEqual([['TWO'], ['ONE']]);
  await put(false);
  expect((await send('POST', 'purchases', body)).statusCode).toBe(201);
});

test('a change must name all members, and an omitted member is not changed silently', async () => {
  const answer = await send('PUT', 'products/ONE', { name: 'Renamed', archive: true });
  expect(answer.json()).toMatchObject({
    code: 'parameters_invalid',
    errors: [
      { parameter: 'recurring', code: 'required' },
      { parameter: 'archived', code: 'required' },
      { parameter: 'archive', code: 'unknown' },
    ],
  });
});

test('a collection is listed, shown and given other products', async () => {
  const made = { name: 'Both', collection_id: 'both', product_keys: ['ONE', 'TWO'] };
  await send('POST', 'collections', made);
  const changed = await send('PUT', 'collections/both', { name: 'Just one', product_keys: ['TWO', 'TWO'] });
  const expected = {
    collection_id: 'both',
    account_id: 'default',
    name: 'Just one',
    product_keys: ['TWO'],
  };
  expect([changed.statusCode, changed.json()]).toEqual([200, { data: expected }]);
  expect((await send('GET', 'collections/both')).json()).toEqual({ data: expected });
  expect((await send('GET', 'collections')).json()).toEqual({ data: { collections: [expected] } });
  const refused = await send('PUT', 'collections/both', { name: 'x', product_keys: ['none'] });
  expect(refused.json()).toMatchObject({ errors: [{ code: 'product_not_found' }] });
  expect((await send('GET', 'collections/both')).json()).toEqual({ data: expected });
  expect(codeOf(await send('GET', 'collections/none'))).toBe('collection_not_found');
  expect(codeOf(await send('PUT', 'collections/none', { name: 'x', product_keys: [] }))).toBe(
    'collection_not_found',
  );
});

test('a purchase shows whether its license has ended, in every answer', async () => {
  const ended = { expires_at: '2026-01-01T23:59:59+00:00', status: 'expired', enabled: true };
  const sold = await sell('ONE', { license_key: 'ENDED', expires_at: '2026-01-01' });
  expect(sold).toMatchObject({ license: ended });
  expect((await send('GET', `purchases/${sold.purchase_id}`)).json()).toEqual({ data: sold });
  expect((await send('GET', 'purchases?license_key=ENDED')).json()).toEqual({ data: { purchases: [sold] } });
  for (const _ of ['first', 'again']) {
    const refunded = (await send('POST', `purchases/${sold.purchase_id}/refund`)).json();
    expect(refunded).toMatchObject({ data: { license: { ...ended, status: 'disabled', enabled: false } } });
  }
  expect((await sell('ONE')).license).not.toHaveProperty('status');
});
