import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminToken, openApp, serverOf, type TestApp } from '../../../support/app/http-app.ts';

type Data = Record<string, string>;

const admin = { authorization: `Bearer ${adminToken}` };
let opened: TestApp;
let server: FastifyInstance;
/** The credentials of a shop's server: one for the whole account, one for the product `press`. */
let ofAccount: object;
let ofProduct: object;

beforeAll(async () => {
  opened = await openApp();
  server = serverOf(opened.app);
  const other = await made(admin, 'accounts', { name: 'Other' });
  for (const [product_key, account_id] of [
    ['press', 'default'],
    ['brush', 'default'],
    ['theirs', other['account_id']],
  ]) {
    await made(admin, 'products', { name: 'X', product_key, account_id });
  }
  ofAccount = await seller({});
  ofProduct = await seller({ product_key: 'press' });
});
afterAll(() => opened[Symbol.asyncDispose]());

function post(headers: object, path: string, payload?: object): Promise<LightMyRequestResponse> {
  const url = `/admin/v1/${path}`;
  return server.inject({ method: 'POST', url, headers: { ...headers }, ...(payload && { payload }) });
}

async function made(headers: object, path: string, payload: object): Promise<Data> {
  const answer = await post(headers, path, payload);
  expect([path, answer.statusCode]).toEqual([path, 201]);
  return answer.json<{ data: Data }>().data;
}

async function seller(payload: object): Promise<object> {
  const { token } = await made(admin, 'tokens', { scopes: ['sell'], ...payload });
  return { authorization: `Bearer ${token}` };
}

/** The result of a sale with this credential. */
async function sale(headers: object, product_key: string): Promise<string> {
  const answer = await post(headers, 'purchases', { product_key, buyer_email: 'b@example.com' });
  const { errors } = answer.json<{ errors?: { parameter: string; code: string }[] }>();
  return [answer.statusCode, ...(errors ?? []).map(({ parameter, code }) => `${parameter}:${code}`)].join(
    ' ',
  );
}

test("a shop's server sells its own products, and other products are unknown to it", async () => {
  const unknown = '422 product_key:product_not_found';
  expect([await sale(ofAccount, 'press'), await sale(ofAccount, 'brush')]).toEqual(['201', '201']);
  expect([await sale(ofAccount, 'theirs'), await sale(ofAccount, 'nothing')]).toEqual([unknown, unknown]);
  expect([await sale(ofProduct, 'press'), await sale(ofProduct, 'brush')]).toEqual(['201', unknown]);
});

test("a shop's server refunds its own purchases, and other purchases are unknown to it", async () => {
  const sell = async (product_key: string) =>
    (await made(admin, 'purchases', { product_key, buyer_email: 'b@example.com' }))['purchase_id'];
  const refund = async (headers: object, id: string | undefined) => {
    const answer = await post(headers, `purchases/${id}/refund`);
    return answer.statusCode === 200 ? 'refunded' : answer.json<{ code: string }>().code;
  };
  const [press, brush, theirs] = [await sell('press'), await sell('brush'), await sell('theirs')];
  expect(await refund(ofProduct, brush)).toBe('purchase_not_found');
  expect(await refund(ofProduct, press)).toBe('refunded');
  expect(await refund(ofAccount, theirs)).toBe('purchase_not_found');
  expect(await refund(ofAccount, brush)).toBe('refunded');
  const actor = (await opened.record()).filter((line) => line.includes('purchase.refund'));
  expect(actor).toHaveLength(2);
  expect(actor.every((line) => /^token:[0-9a-f-]{36} \| /.test(line))).toBe(true);
});

test("a shop's server can do nothing except sell and refund", async () => {
  for (const path of ['products', 'tokens', 'accounts']) {
    const answer = await post(ofAccount, path, { name: 'X', scopes: ['sell'] });
    expect([path, answer.statusCode]).toEqual([path, 403]);
  }
  const verified = await server.inject({
    url: '/api/v2/license/verify?license_key=X',
    headers: { ...ofAccount },
  });
  expect(verified.statusCode).toBe(403);
});

test('a token with a misspelt expiry parameter is not issued', async () => {
  const refused = await post(admin, 'tokens', { scopes: ['sell'], expire_at: '2030-01-01T00:00:00Z' });
  expect([refused.statusCode, refused.json<{ errors: object[] }>().errors]).toEqual([
    422,
    [{ parameter: 'expire_at', code: 'unknown', detail: 'There is no such parameter.' }],
  ]);
});
