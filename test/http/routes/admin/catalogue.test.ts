import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LightMyRequestResponse } from 'fastify';
import { codeOf, openApp, type TestApp } from '../../../support/app/http-app.ts';

let opened: TestApp;
beforeAll(async () => {
  opened = await openApp();
});
afterAll(() => opened[Symbol.asyncDispose]());

type Answer = Promise<LightMyRequestResponse>;
const post = (path: string, payload?: object): Answer => opened.send('POST', path, payload);
const put = (path: string, payload: object): Answer => opened.send('PUT', path, payload);
const get = (path: string): Answer => opened.send('GET', path);

test('the account of the first start is listed without its API key', async () => {
  const answer = await get('accounts');
  expect(answer.json()).toEqual({ data: { accounts: [{ account_id: 'default', name: 'default' }] } });
});

test('a product is created as requested, and its secret is shown once', async () => {
  const product = {
    product_key: 'RGsF',
    account_id: 'default',
    name: 'Taken over',
    recurring: true,
    archived: false,
    seats: null,
    lease_hold_s: 90 * 86_400,
    lease_term_s: 30 * 86_400,
    lease_refresh_s: 86_400,
    lease_email: false,
    license_for: null,
    entitlements: [],
    expiry_grace_s: 0,
  };
  const made = await post('products', {
    name: 'Taken over',
    product_key: 'RGsF',
    secret: 'sixteen-letters!',
    recurring: true,
  });
  expect([made.statusCode, made.json()]).toEqual([201, { data: { ...product, secret: 'sixteen-letters!' } }]);
  const listed = await get('products');
  expect(listed.json()).toEqual({
    data: { products: [product] },
  });
  expect(listed.headers['x-total-count']).toBe('1');
  expect(codeOf(await post('products', { name: 'Again', product_key: 'RGsF' }))).toBe('product_key_taken');
  const rotated = await post('products/RGsF/rotate-secret');
  expect([rotated.statusCode, rotated.json<{ data: { secret: string } }>().data.secret]).toEqual([
    200,
    expect.stringMatching(/^lk_prod_/),
  ]);
});

test('the lease terms of a product are set, changed one by one, and kept by a request that names none', async () => {
  const made = await post('products', { name: 'Leased', product_key: 'LEASED', seats: 3, lease_hold_s: 0 });
  expect(made.json()).toMatchObject({ data: { seats: 3, lease_hold_s: 0, lease_term_s: 2_592_000 } });
  const facts = { name: 'Leased', recurring: false, archived: false };
  const changed = { lease_term_s: 600, lease_refresh_s: 60, lease_email: true };
  expect((await put('products/LEASED', { ...facts, ...changed })).json()).toMatchObject({
    data: { seats: 3, lease_hold_s: 0, ...changed },
  });
  expect((await put('products/LEASED', facts)).json()).toMatchObject({ data: { seats: 3, ...changed } });
  const unlimited = await put('products/LEASED', { ...facts, seats: 'unlimited' });
  expect(unlimited.json()).toMatchObject({ data: { seats: null, ...changed } });
  const [latest] = (await get('audit?act=product.update')).json<{ data: { acts: { detail: string }[] } }>()
    .data.acts;
  expect(latest?.detail).toBe(
    'Leased, once, on sale, any number of seats, hold 0 s, term 600 s, refresh 60 s, with the e-mail address',
  );
});

test.each([
  ['seats', { seats: 0 }],
  ['seats', { seats: 'all' }],
  ['seats', { seats: 1_000_001 }],
  ['lease_hold_s', { lease_hold_s: -1 }],
  ['lease_term_s', { lease_term_s: 59 }],
  ['lease_term_s', { lease_term_s: 401 * 86_400 }],
  ['lease_refresh_s', { lease_refresh_s: 9 }],
  ['lease_refresh_s', { lease_term_s: 600, lease_refresh_s: 600 }],
  ['lease_term_s', { lease_term_s: 600 }],
  ['lease_email', { lease_email: 'perhaps' }],
] as const)('a product with the wrong %s is refused: %o', async (parameter, terms) => {
  const refused = await post('products', { name: 'Wrong', ...terms });
  expect([refused.statusCode, refused.json<{ errors: { parameter: string }[] }>().errors]).toEqual([
    422,
    [expect.objectContaining({ parameter })],
  ]);
});

test('an account can take over the API key that its clients already send, and no other account can have it', async () => {
  const taken = 'f00dfeedf00dfeed';
  const made = await post('accounts', { name: 'Shop', api_key: taken });
  expect([made.statusCode, made.json()]).toMatchObject([201, { data: { name: 'Shop', api_key: taken } }]);
  const coupons = await opened.send('GET', '/api/v2/coupons', undefined, { 'service-api-key': taken });
  expect(coupons.statusCode).toBe(200);
  for (const [apiKey, code] of [
    [taken, 'taken'],
    ['fifteen-letters', 'too_short'],
    ['two lines\nof a file', 'malformed'],
  ]) {
    const refused = await post('accounts', { name: 'Another', api_key: apiKey });
    expect([refused.statusCode, refused.json()]).toMatchObject([
      422,
      { errors: [{ parameter: 'api_key', code }] },
    ]);
  }
});

test('an imported purchase of another store keeps its date, its uses and its state', async () => {
  await post('products', { name: 'Sold before', product_key: 'sold', secret: 'the-secret-of-sold' });
  const sale = { product_key: 'sold', buyer_email: 'old@example.com', license_key: 'OLD-1' };
  const made = await post('purchases', {
    ...sale,
    date: '2024-02-22T12:23:05+01:00',
    uses: 3,
    enabled: false,
  });
  expect([made.statusCode, made.json()]).toMatchObject([
    201,
    { data: { refunded: false, license: { date: '2024-02-22T11:23:05+00:00', uses: 3, enabled: false } } },
  ]);
  const secret = { 'product-secret-key': 'the-secret-of-sold' };
  const verified = await opened.send('GET', '/api/v2/license/verify?license_key=OLD-1', undefined, secret);
  expect(verified.json()).toMatchObject({
    data: { license_key: 'OLD-1', date: '2024-02-22T11:23:05+00:00', uses: 3, enabled: false },
  });
});

test('the response to an invalid purchase names every unknown or unreadable member, and nothing is stored', async () => {
  const misread = {
    date: 'yesterday',
    uses: -1,
    enabled: 'perhaps',
    created: '2024-02-22',
    license: 'OLD-2',
  };
  const refused = await post('purchases', { product_key: 'RGsF', buyer_email: 'a@example.com', ...misread });
  expect([refused.statusCode, refused.json<{ errors: object[] }>().errors]).toMatchObject([
    422,
    [
      { parameter: 'date', code: 'not_a_datetime' },
      { parameter: 'uses', code: 'out_of_range' },
      { parameter: 'enabled', code: 'not_a_boolean' },
      { parameter: 'created', code: 'unknown' },
      { parameter: 'license', code: 'unknown' },
    ],
  ]);
  expect((await get('licenses?product_key=RGsF')).headers['x-total-count']).toBe('0');
});

test('a key cannot be issued with so many uses that later uses could not be counted', async () => {
  const sold = { product_key: 'RGsF', buyer_email: 'a@example.com', license_key: 'MANY' };
  const most = 1_000_000_000_000_000;
  const refused = await post('purchases', { ...sold, uses: most + 1 });
  expect(refused.json()).toMatchObject({ errors: [{ parameter: 'uses', code: 'out_of_range' }] });
  expect((await post('purchases', { ...sold, uses: most })).statusCode).toBe(201);
});

test('a guessable product secret is refused', async () => {
  const answer = await post('products', { name: 'X', secret: 'fifteen-letters' });
  expect([answer.statusCode, answer.json()]).toMatchObject([
    422,
    {
      code: 'parameters_invalid',
      errors: [
        { parameter: 'secret', code: 'too_short', detail: 'secret must have at least 16 characters.' },
      ],
    },
  ]);
});

test.each(['.', '..'])('an object with the id %s is refused, because no path can contain it', async (id) => {
  const unnamed = { code: 'malformed', detail: expect.stringContaining('must not be . or ..') as string };
  const product = await post('products', { name: 'X', product_key: id });
  expect(product.json()).toMatchObject({ errors: [{ parameter: 'product_key', ...unnamed }] });
  const collection = await post('collections', { name: 'X', product_keys: ['RGsF'], collection_id: id });
  expect(collection.json()).toMatchObject({ errors: [{ parameter: 'collection_id', ...unnamed }] });
  const sold = { product_key: 'RGsF', buyer_email: 'a@example.com', license_key: 'DOT', purchase_id: id };
  const imported = await post('purchases/import', { purchases: [sold] });
  expect(imported.json()).toMatchObject({ data: { imported: 0, rejected: [{ row: 1, ...unnamed }] } });
});

test('a product is found by a key of any hundred characters', async () => {
  const product_key = '😀'.repeat(100);
  expect((await post('products', { name: 'Long', product_key })).statusCode).toBe(201);
  const found = await get(`products/${encodeURIComponent(product_key)}`);
  expect(found.json()).toMatchObject({ data: { product_key, name: 'Long' } });
});

test('a product for an unknown account is refused', async () => {
  const answer = await post('products', { name: 'X', account_id: 'nobody' });
  expect(answer.json()).toMatchObject({
    code: 'parameters_invalid',
    errors: [{ parameter: 'account_id', code: 'account_not_found' }],
  });
});

test('an unknown object cannot be rotated or refunded', async () => {
  expect(codeOf(await post('accounts/x/rotate-key'))).toBe('account_not_found');
  expect(codeOf(await post('products/x/rotate-secret'))).toBe('product_not_found');
  expect(codeOf(await post('purchases/x/refund'))).toBe('purchase_not_found');
});

test('all errors of a body are reported at once', async () => {
  const answer = await post('collections', { name: '', product_keys: 'RGsF', collection_id: 7 });
  expect(answer.json<{ errors: { parameter: string; code: string }[] }>().errors).toMatchObject([
    { parameter: 'name', code: 'required' },
    { parameter: 'product_keys', code: 'not_a_list' },
    { parameter: 'collection_id', code: 'not_text' },
  ]);
});

test.each(['\0', '\uD800', ''])('a list that contains %j is not accepted as a list of texts', async (key) => {
  const answer = await post('collections', { name: 'Tools', product_keys: ['RGsF', key] });
  expect([answer.statusCode, answer.json()]).toMatchObject([
    422,
    { errors: [{ parameter: 'product_keys', code: 'not_a_list' }] },
  ]);
});

test('licenses are listed by product, state and buyer in pages', async () => {
  const { product_key: productKey } = (await post('products', { name: 'Listed' })).json<{
    data: { product_key: string };
  }>().data;
  const buyers = ['a@example.com', 'b@example.com', 'a@example.com'];
  for (const buyer of buyers) await post('purchases', { product_key: productKey, buyer_email: buyer });
  const refunded = (await post('purchases', { product_key: productKey, buyer_email: 'c@example.com' })).json<{
    data: { purchase_id: string };
  }>().data;
  await post(`purchases/${refunded.purchase_id}/refund`);
  const count = async (query: string): Promise<unknown> =>
    (await get(`licenses?product_key=${productKey}&${query}`)).headers['x-total-count'];
  expect(await count('')).toBe('4');
  expect(await count('enabled=false')).toBe('1');
  expect(await count('buyer_email=a%40example.com')).toBe('2');
  const page = await get(`licenses?product_key=${productKey}&enabled=true&limit=2`);
  expect(page.json<{ data: { licenses: object[] } }>().data.licenses).toHaveLength(2);
  expect(page.headers['link']).toContain(
    `</admin/v1/licenses?product_key=${productKey}&enabled=true&limit=2&cursor=`,
  );
  expect((await get('licenses?enabled=maybe')).statusCode).toBe(422);
});
