import { afterAll, beforeAll, expect, test } from 'vitest';
import { codeOf, dataOf, openApp, type TestApp } from '../../../support/app/http-app.ts';

type Data = Record<string, string>;

let opened: TestApp;
/** The credentials of a shop's server: one for the whole account, one for the product `press`. */
let ofAccount: object;
let ofProduct: object;

beforeAll(async () => {
  opened = await openApp();
  const other = await made('accounts', { name: 'Other' });
  for (const [product_key, account_id] of [
    ['press', 'default'],
    ['brush', 'default'],
    ['theirs', other['account_id']],
  ]) {
    await made('products', { name: 'X', product_key, account_id });
  }
  ofAccount = await seller({});
  ofProduct = await seller({ product_key: 'press' });
});
afterAll(() => opened[Symbol.asyncDispose]());

/** As the operator. */
async function made(path: string, payload: object): Promise<Data> {
  const answer = await opened.send('POST', path, payload);
  expect([path, answer.statusCode]).toEqual([path, 201]);
  return await dataOf(answer);
}

async function seller(payload: object): Promise<object> {
  const { token } = await made('tokens', { scopes: ['sell'], ...payload });
  return { authorization: `Bearer ${token}` };
}

/** The result of a sale with this credential. */
async function sale(headers: object, product_key: string): Promise<string> {
  const answer = await opened.send(
    'POST',
    'purchases',
    { product_key, buyer_email: 'b@example.com' },
    headers,
  );
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
    (await made('purchases', { product_key, buyer_email: 'b@example.com' }))['purchase_id'];
  const refund = async (headers: object, id: string | undefined) => {
    const answer = await opened.send('POST', `purchases/${id}/refund`, undefined, headers);
    return answer.statusCode === 200 ? 'refunded' : codeOf(answer);
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
    const answer = await opened.send('POST', path, { name: 'X', scopes: ['sell'] }, ofAccount);
    expect([path, answer.statusCode]).toEqual([path, 403]);
  }
  const verified = await opened.send('GET', '/api/v2/license/verify?license_key=X', undefined, ofAccount);
  expect(verified.statusCode).toBe(403);
});

test('a token with a misspelt expiry parameter is not issued', async () => {
  const refused = await opened.send('POST', 'tokens', {
    scopes: ['sell'],
    expire_at: '2030-01-01T00:00:00Z',
  });
  expect([refused.statusCode, refused.json<{ errors: object[] }>().errors]).toEqual([
    422,
    [{ parameter: 'expire_at', code: 'unknown', detail: 'There is no such parameter.' }],
  ]);
});
