import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adminToken, apiKey, productsOf } from '../support/app/http-app.ts';
import { serveApp, type Served } from '../support/app/http-served.ts';
import { httpClient, type HttpResponse, type HttpClient } from '../support/network/raw-http.ts';
import { buildToken } from '../support/builders/store-builders.ts';

type Data = Record<string, unknown>;

const admin = { authorization: `Bearer ${adminToken}` };
const tokens = '/admin/v1/tokens';
const datetime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/;

let served: Served;
beforeAll(async () => {
  served = await serveApp();
});
afterAll(() => served[Symbol.asyncDispose]());

function data(answer: HttpResponse): Data {
  return (answer.body as { data: Data }).data;
}

function outcome(answer: HttpResponse): [number, string] {
  return [answer.status, String((answer.body as Data)['code'])];
}

function faults(answer: HttpResponse): string[] {
  const { errors = [] } = answer.body as { errors?: { parameter: string; code: string }[] };
  return errors.map(({ parameter, code }) => `${parameter}:${code}`);
}

describe.each(['tcp', 'socket'] as const)('over %s', (listener) => {
  let http: HttpClient;
  const product = { key: '', license: '', other: '', otherLicense: '' };

  beforeAll(async () => {
    http = httpClient(served.listeners[listener]);
    [product.key, product.license] = await addProduct();
    [product.other, product.otherLicense] = await addProduct();
  });
  afterAll(() => http[Symbol.asyncDispose]());

  async function addProduct(more: Data = {}): Promise<[string, string]> {
    const made = data(
      await http.post('/admin/v1/products', { headers: admin, json: { name: 'P', ...more } }),
    );
    const json = { product_key: made['product_key'], buyer_email: 'b@example.com' };
    const purchase = data(await http.post('/admin/v1/purchases', { headers: admin, json }));
    return [String(made['product_key']), String((purchase['license'] as Data)['license_key'])];
  }

  const issue = (json: Data): Promise<HttpResponse> => http.post(tokens, { headers: admin, json });
  const bearer = (issued: HttpResponse): { authorization: string } => ({
    authorization: `Bearer ${String(data(issued)['token'])}`,
  });
  const verify = (key: string, headers: Record<string, string>): Promise<HttpResponse> =>
    http.get(`/api/v2/license/verify?license_key=${key}`, { headers });

  test('a token is shown once with all its members, and listed without its secret', async () => {
    const issued = await issue({
      scopes: ['use', 'verify', 'use'],
      product_key: product.key,
      label: 'till',
    });
    expect(issued.status).toBe(201);
    const { token, ...rest } = data(issued);
    expect(token).toMatch(/^lk_tok_[0-9a-f]{64}$/);
    expect(rest).toEqual({
      token_id: expect.any(String),
      scopes: ['verify', 'use'],
      product_key: product.key,
      account_id: 'default',
      label: 'till',
      created_at: expect.stringMatching(datetime),
      last_used_at: null,
      expires_at: null,
    });
    const listed = await http.get(`${tokens}?limit=100`, { headers: admin });
    expect(data(listed)['tokens']).toContainEqual(rest);
    expect(listed.headers['x-total-count']).toBe(String((data(listed)['tokens'] as unknown[]).length));
    expect(JSON.stringify(listed.body)).not.toContain('lk_tok_');
  });

  test('a token allows exactly what its scopes say', async () => {
    const headers = bearer(await issue({ scopes: ['verify'] }));
    expect((await verify(product.license, headers)).status).toBe(200);
    const use = await http.put('/api/v2/license/usage', {
      headers,
      form: { license_key: product.license },
    });
    expect(outcome(use)).toEqual([403, 'scope_missing']);
    expect((use.body as Data)['detail']).toContain('use');
  });

  test('a product token sees keys of other products as unknown, and a token without a product sees all keys', async () => {
    const bound = bearer(await issue({ scopes: ['verify'], product_key: product.key }));
    expect((await verify(product.license, bound)).status).toBe(200);
    const foreign = await verify(product.otherLicense, bound);
    const unknown = await verify('NO-SUCH-KEY', bound);
    expect(outcome(foreign)).toEqual([404, 'license_not_found']);
    expect({ ...(foreign.body as Data), request_id: '' }).toEqual({
      ...(unknown.body as Data),
      request_id: '',
    });
    const free = bearer(await issue({ scopes: ['verify'] }));
    for (const key of [product.license, product.otherLicense]) {
      expect((await verify(key, free)).status).toBe(200);
    }
  });

  test('a token acts for its account, and sees nothing of another account', async () => {
    const account = data(await http.post('/admin/v1/accounts', { headers: admin, json: { name: 'A' } }));
    const [key, license] = await addProduct({ account_id: account['account_id'] });
    const theirs = bearer(
      await issue({ scopes: ['verify', 'coupons:read'], account_id: account['account_id'] }),
    );
    expect((await verify(license, theirs)).status).toBe(200);
    expect(outcome(await verify(product.license, theirs))).toEqual([404, 'license_not_found']);
    const code = `${listener}-ours`;
    const form = { coupon_type: 'multi', amount_off: '5', code };
    await http.post('/api/v2/coupons', { headers: { 'service-api-key': apiKey }, form });
    const seen = await http.get('/api/v2/coupons?limit=100', { headers: theirs });
    expect(data(seen)['coupons']).toEqual([]);
    const ofProduct = data(await issue({ scopes: ['verify'], product_key: key }));
    expect(ofProduct['account_id']).toBe(account['account_id']);
  });

  test('a revoked token stops working at once, and cannot be revoked again', async () => {
    const issued = await issue({ scopes: ['verify'], label: 'gone' });
    const path = `${tokens}/${String(data(issued)['token_id'])}`;
    expect((await verify(product.license, bearer(issued))).status).toBe(200);
    const revoked = await http.delete(path, { headers: admin });
    expect([revoked.status, data(revoked)]).toMatchObject([200, { label: 'gone' }]);
    expect(outcome(await verify(product.license, bearer(issued)))).toEqual([401, 'credentials_invalid']);
    expect(outcome(await http.delete(path, { headers: admin }))).toEqual([404, 'token_not_found']);
  });

  test('a token has an expiry time, and shows the hour of its last use but never a time before it was issued', async () => {
    const issued = await issue({ scopes: ['verify'], expires_at: '2999-12-31T18:00:00+01:00' });
    expect(data(issued)['expires_at']).toBe('2999-12-31T17:00:00+00:00');
    expect((await verify(product.license, bearer(issued))).status).toBe(200);
    await served.app.writer.write('storeTokenUses', { uses: served.tokenUses.take() });
    const listed = await http.get(`${tokens}?limit=100`, { headers: admin });
    const found = (data(listed)['tokens'] as Data[]).find(
      ({ token_id: id }) => id === data(issued)['token_id'],
    );
    // The hour of the use began before the token was issued, unless a new hour has just begun.
    const createdAt = String(found?.['created_at']);
    const hour = new Date().toISOString().replace(/:\d\d:.*$/, ':00:00+00:00');
    expect(found?.['last_used_at']).toBe(hour > createdAt ? hour : createdAt);
  });

  test('the token in admin.token cannot be revoked, because the next start would accept it again', async () => {
    const token = buildToken({ tokenId: 'admin.token' });
    await served.write(async (tables) => {
      await tables.tokens.remove('admin.token');
      await tables.tokens.add(token, `${listener} digest`);
    });
    const answer = await http.delete(`${tokens}/admin.token`, { headers: admin });
    expect(outcome(answer)).toEqual([409, 'token_of_the_file']);
  });

  test('a token with the scope admin issues tokens, and a token without it does not', async () => {
    const headers = bearer(await issue({ scopes: ['admin'] }));
    const second = await http.post(tokens, { headers, json: { scopes: ['verify'] } });
    expect(second.status).toBe(201);
    const refused = await http.post(tokens, { headers: bearer(second), json: { scopes: ['verify'] } });
    expect(outcome(refused)).toEqual([403, 'scope_missing']);
  });

  test.each<[string, Data, string[]]>([
    ['no scopes', {}, ['scopes:required']],
    ['an empty list of scopes', { scopes: [] }, ['scopes:required']],
    ['an unknown scope', { scopes: ['verify', 'everything'] }, ['scopes:not_one_of']],
    ['scopes that are not a list', { scopes: 'verify' }, ['scopes:not_a_list']],
    ['a scope that is not a text', { scopes: [{}] }, ['scopes:not_one_of']],
    ['an unknown product', { scopes: ['verify'], product_key: 'none' }, ['product_key:product_not_found']],
    ['an unknown account', { scopes: ['verify'], account_id: 'none' }, ['account_id:account_not_found']],
    [
      'two faults',
      { scopes: ['ops'], account_id: 'none', product_key: 'none' },
      ['account_id:account_not_found', 'product_key:product_not_found'],
    ],
    ['an end that has passed', { scopes: ['ops'], expires_at: '2020-01-01T00:00:00Z' }, ['expires_at:past']],
    [
      'an expiry that is not a datetime',
      { scopes: ['ops'], expires_at: '90d' },
      ['expires_at:not_a_datetime'],
    ],
    ['a label too long', { scopes: ['verify'], label: 'x'.repeat(201) }, ['label:too_long']],
  ])('issuing a token with %s is refused', async (_, json, expected) => {
    const answer = await issue(json);
    expect([answer.status, faults(answer)]).toEqual([422, expected]);
  });

  test.each(['coupons:read', 'coupons:write', 'admin'])(
    'a token for one product cannot carry %s',
    async (scope) => {
      const answer = await issue({ scopes: ['verify', scope], product_key: product.key });
      expect([answer.status, faults(answer)]).toEqual([422, ['scopes:excluded']]);
    },
  );

  test("a token's product must belong to its account", async () => {
    const account = data(await http.post('/admin/v1/accounts', { headers: admin, json: { name: 'B' } }));
    const answer = await issue({
      scopes: ['verify'],
      product_key: product.key,
      account_id: account['account_id'],
    });
    expect(faults(answer)).toEqual(['product_key:product_not_found']);
  });

  test('a response with a secret is not stored: the same idempotency key makes another token', async () => {
    const headers = { ...admin, 'idempotency-key': `${listener}-issue` };
    const json = { scopes: ['verify'] };
    const first = await http.post(tokens, { headers, json });
    const second = await http.post(tokens, { headers, json });
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(data(first)['token']).not.toBe(data(second)['token']);
  });
});

test('an agent issues tokens for its configured products, and for its only account', async () => {
  await using agent = await serveApp({ role: 'agent', products: productsOf('RGsF') });
  await using http = httpClient(agent.listeners.tcp);
  const issue = (json: Data): Promise<HttpResponse> => http.post(tokens, { headers: admin, json });
  expect((await issue({ scopes: ['verify', 'use'], product_key: 'RGsF' })).status).toBe(201);
  expect((await issue({ scopes: ['verify'], account_id: 'default' })).status).toBe(201);
  const json = { scopes: ['admin'], account_id: 'default' };
  const token = String(data(await http.post(tokens, { headers: admin, json }))['token']);
  const ofAccount = { headers: { authorization: `Bearer ${token}` } };
  const further = { ...ofAccount, json: { scopes: ['verify'], product_key: 'RGsF' } };
  expect((await http.post(tokens, further)).status).toBe(201);
  expect(faults(await issue({ scopes: ['verify'], product_key: 'other' }))).toEqual([
    'product_key:product_not_found',
  ]);
  expect(faults(await issue({ scopes: ['verify'], account_id: 'other' }))).toEqual([
    'account_id:account_not_found',
  ]);
});
