import { defaultLeaseTerms, defaultProductTerms } from '../../../../src/domain/catalogue.ts';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adminToken, apiKey, openApp, serverOf, type TestApp } from '../../../support/app/http-app.ts';

let opened: TestApp;
let server: FastifyInstance;
let couponId: number;

beforeAll(async () => {
  opened = await openApp();
  server = serverOf(opened.app);
  await admin('products', { name: 'Editor', product_key: 'EDITOR', secret: 'sixteen-letters!' });
  await admin('products', { name: 'Monthly', product_key: 'MONTHLY', recurring: true });
  await admin('accounts', { name: 'Other', account_id: 'other' });
  const theirs = {
    productKey: 'THEIRS',
    accountId: 'other',
    name: 'T',
    recurring: false,
    createdAt: 0,
    archivedAt: null,
    leaseTerms: defaultLeaseTerms,
    licenseTerms: defaultProductTerms,
  };
  const accountId = await otherAccount();
  await opened.write(({ products }) => products.add({ ...theirs, accountId }, 'digest'));
  couponId = await coupon({ code: 'Spring', percent_off: 20 });
});
afterAll(() => opened[Symbol.asyncDispose]());

const admin = (path: string, payload: object): Promise<LightMyRequestResponse> =>
  server.inject({
    method: 'POST',
    url: `/admin/v1/${path}`,
    headers: { authorization: `Bearer ${adminToken}` },
    payload,
  });

async function otherAccount(): Promise<string> {
  const answer = await server.inject({
    url: '/admin/v1/accounts',
    headers: { authorization: `Bearer ${adminToken}` },
  });
  const { accounts } = answer.json<{ data: { accounts: { account_id: string }[] } }>().data;
  return accounts.find(({ account_id: id }) => id !== 'default')?.account_id ?? '';
}

const headers = { 'service-api-key': apiKey };

function send(method: 'GET' | 'POST' | 'DELETE', path: string, payload?: object | string, more: object = {}) {
  return server.inject({
    method,
    url: `/agent/v1/${path}`,
    headers: { ...headers, ...(payload !== undefined && { 'content-type': 'application/json' }), ...more },
    ...(payload !== undefined && { payload }),
  });
}

async function coupon(terms: object): Promise<number> {
  const made = await server.inject({
    method: 'POST',
    url: '/api/v2/coupons',
    headers,
    payload: { coupon_type: 'multi', ...terms },
  });
  return made.json<{ data: { id: number } }>().data.id;
}

const items = [{ product_key: 'EDITOR', amount: 1999, quantity: 2 }];
const cart = { code: 'spring', items };

function faultsOf(answer: LightMyRequestResponse): string[] {
  const { errors = [] } = answer.json<{ errors?: { parameter: string; code: string }[] }>();
  return errors.map(({ parameter, code }) => `${parameter} ${code}`);
}

const quoted = {
  code: 'Spring',
  coupon_id: expect.any(Number),
  redeemable: true,
  reasons: [],
  subtotal: 3998,
  eligible_subtotal: 3998,
  discount: 800,
  total: 3198,
  lines: [{ product_key: 'EDITOR', amount: 1999, quantity: 2, discount: 800 }],
};

describe('a quote', () => {
  test('a quote shows the discount on a cart, and records nothing', async () => {
    const answer = await send('POST', 'quote', cart);
    expect([answer.statusCode, answer.json()]).toStrictEqual([
      200,
      { data: { ...quoted, coupon_id: couponId } },
    ]);
    expect(answer.headers).toMatchObject({ 'latchkey-freshness': 'authoritative' });
    expect(await opened.app.reader.redemptions.countOf('default', couponId)).toBe(0);
    expect(opened.lines.filter(({ route }) => route === '/agent/v1/quote')).toEqual([]);
  });

  test('a quote is 200 with all reasons even if the rules refuse the coupon', async () => {
    const id = await coupon({
      code: 'LATER',
      amount_off: 500,
      start_date: '2999-01-01T00:00:00Z',
      minimum_purchase_amount: 100_000,
    });
    const answer = await send('POST', 'quote', { ...cart, code: 'LATER' });
    expect([answer.statusCode, answer.json()]).toStrictEqual([
      200,
      {
        data: {
          ...quoted,
          code: 'LATER',
          coupon_id: id,
          redeemable: false,
          reasons: ['not_started', 'minimum_not_met'],
          discount: 0,
          total: 3998,
          lines: [{ ...quoted.lines[0], discount: 0 }],
        },
      },
    ]);
  });

  test('a quote accepts a pasted code, and null or missing quantities', async () => {
    const lines = [{ product_key: 'EDITOR', amount: '1999', quantity: null, recurring: 'false' }];
    const answer = await send('POST', 'quote', { code: '  SPRING \n', currency: 'eur', items: lines });
    expect(answer.json()).toMatchObject({
      data: { subtotal: 1999, discount: 400, lines: [{ quantity: 1 }] },
    });
  });

  test('a quote knows which products have a recurring price', async () => {
    const answer = await send('POST', 'quote', {
      code: 'SPRING',
      items: [{ product_key: 'MONTHLY', amount: 5 }],
    });
    expect(answer.json()).toMatchObject({ data: { redeemable: false, reasons: ['recurring_not_covered'] } });
  });
});

describe('a cart that cannot be priced', () => {
  const line = { product_key: 'EDITOR', amount: 100 };
  const lines = (count: number): object[] => Array.from({ length: count }, () => line);
  test.each<[what: string, body: object, faults: string[]]>([
    ['an empty body', {}, ['code required', 'items required']],
    ['no lines', { code: 'A', items: [] }, ['items required']],
    ['more than a thousand lines', { code: 'A', items: lines(1001) }, ['items too_long']],
    ['lines that are not a list', { code: 'A', items: { 0: line } }, ['items not_a_list']],
    [
      'lines that are not objects',
      { code: 'A', items: [line, null, 'EDITOR', [line]] },
      ['items[1] not_an_object', 'items[2] not_an_object', 'items[3] not_an_object'],
    ],
    [
      'an empty line',
      { code: 'A', items: [{}] },
      ['items[0].product_key required', 'items[0].amount required'],
    ],
    [
      'negative cents',
      { code: 'A', items: [line, { ...line, amount: -1 }] },
      ['items[1].amount out_of_range'],
    ],
    [
      'fractional cents',
      { code: 'A', items: [{ ...line, amount: 19.99 }] },
      ['items[0].amount not_an_integer'],
    ],
    [
      'an amount as a decimal text',
      { code: 'A', items: [{ ...line, amount: '19.99' }] },
      ['items[0].amount not_an_integer'],
    ],
    [
      'an amount that is too large',
      { code: 'A', items: [{ ...line, amount: 1e21 }] },
      ['items[0].amount not_an_integer'],
    ],
    ['a quantity of 0', { code: 'A', items: [{ ...line, quantity: 0 }] }, ['items[0].quantity out_of_range']],
    [
      'a sum that is too large',
      { code: 'A', items: [{ ...line, amount: 2 ** 53 - 1, quantity: 2 }] },
      ['items out_of_range'],
    ],
    ['a misspelt member', { code: 'A', items: [{ ...line, quantitiy: 2 }] }, ['items[0].quantitiy unknown']],
    ['a misspelt parameter', { code: 'A', items: [line], curency: 'EUR' }, ['curency unknown']],
    ['a strange currency', { code: 'A', items: [line], currency: 'EURO' }, ['currency malformed']],
    [
      'collections that are not a list',
      { code: 'A', items: [{ ...line, collection_ids: 'A' }] },
      ['items[0].collection_ids not_a_list'],
    ],
    ['a code of 10,000 characters', { code: 'A'.repeat(10_000), items: [line] }, ['code too_long']],
    ['a code of 240,000 characters', { code: 'A'.repeat(240_000), items: [line] }, ['code too_long']],
    ['a code that is not a text', { code: 7, items: [line] }, ['code not_text']],
    [
      "another seller's product, and one of nobody",
      { code: 'A', items: [line, { ...line, product_key: 'THEIRS' }, { ...line, product_key: 'NONE' }] },
      ['items[1].product_key product_not_found', 'items[2].product_key product_not_found'],
    ],
    [
      'an order id, which a quote does not have',
      { code: 'A', items: [line], order: 'A-1' },
      ['order unknown'],
    ],
  ])('a quote with %s is refused with the parameters at fault', async (_, body, faults) => {
    const answer = await send('POST', 'quote', body);
    expect([answer.statusCode, faultsOf(answer)]).toEqual([422, faults]);
    expect(answer.body).not.toContain('AAAAAAAAAA');
  });

  test('a repeated member in a line is refused, although JSON would keep the last one', async () => {
    const body = '{"code":"SPRING","items":[{"product_key":"EDITOR","amount":100,"amount":1}]}';
    const answer = await send('POST', 'quote', body);
    expect(answer.json()).toMatchObject({ status: 400, code: 'duplicate_parameter' });
  });

  test('only the first fifty of many errors are listed', async () => {
    const answer = await send('POST', 'quote', { code: 'A', items: Array.from({ length: 400 }, () => ({})) });
    expect(faultsOf(answer)).toHaveLength(50);
    expect(answer.json()).toMatchObject({ detail: expect.stringContaining('and 750 more') });
  });

  test('a cart of a thousand lines is accepted regardless of limits.body_bytes', async () => {
    const answer = await send('POST', 'quote', { code: 'SPRING', items: lines(1000) });
    expect([answer.statusCode, answer.payload.length > 16_384]).toEqual([200, true]);
    const { data } = answer.json<{ data: { discount: number; lines: { discount: number }[] } }>();
    expect(data.discount).toBe(20_000);
    expect(data.lines.every(({ discount }) => discount === 20)).toBe(true);
    const tooLong = await send('POST', 'quote', { code: 'A', items: ['x'.repeat(300_000)] });
    expect(tooLong.statusCode).toBe(413);
  });
});

describe('a redemption', () => {
  const redeem = (body: object, more?: object): Promise<LightMyRequestResponse> =>
    send('POST', 'redemptions', { ...cart, ...body }, more);

  test('a redemption is created once for an order, can be read, and is gone after it is voided', async () => {
    const made = await redeem({ order: 'A/1 é' });
    const redemption = { ...quoted, order: 'A/1 é', redeemed_at: expect.any(String), over_limit: false };
    expect([made.statusCode, made.json()]).toStrictEqual([201, { data: redemption }]);
    const { location = '' } = made.headers;
    expect(location).toBe('/agent/v1/redemptions/A%2F1%20%C3%A9');
    const again = await redeem({ order: 'A/1 é' });
    expect([again.statusCode, again.json()]).toEqual([200, made.json()]);
    const read = await server.inject({ url: location, headers });
    expect([read.statusCode, read.json()]).toEqual([200, made.json()]);
    const voided = await server.inject({ method: 'DELETE', url: location, headers });
    expect([voided.statusCode, voided.body]).toEqual([204, '']);
    const gone = await server.inject({ method: 'DELETE', url: location, headers });
    expect(gone.json()).toMatchObject({ status: 404, code: 'redemption_not_found' });
    expect((await server.inject({ url: location, headers })).statusCode).toBe(404);
    expect(await opened.record()).toContainEqual(expect.stringContaining('redemption.void | A/1 é | coupon'));
  });

  test('a redemption of another cart for the same order is refused until the first one is voided', async () => {
    await redeem({ order: 'B' });
    const other = await redeem({ order: 'B', items: [{ product_key: 'EDITOR', amount: 1 }] });
    expect(other.json()).toMatchObject({ status: 422, code: 'order_reused' });
    await send('DELETE', 'redemptions/B');
    const then = await redeem({ order: 'B', items: [{ product_key: 'EDITOR', amount: 1 }] });
    expect(then.statusCode).toBe(201);
  });

  test('a redemption that the rules refuse is 409 with all reasons, and stores nothing', async () => {
    const refused = await redeem({ order: 'C', code: 'NOTHING' });
    expect(refused.json()).toMatchObject({
      status: 409,
      code: 'coupon_not_redeemable',
      reasons: ['unknown_code'],
    });
    expect((await send('GET', 'redemptions/C')).statusCode).toBe(404);
  });

  test('a repeated redemption under an idempotency key gets the first status and Location', async () => {
    const key = { 'idempotency-key': 'once' };
    const made = await redeem({ order: 'D' }, key);
    const again = await redeem({ order: 'D' }, key);
    expect([again.statusCode, again.headers['location'], again.body]).toEqual([
      201,
      made.headers['location'],
      made.body,
    ]);
    const voided = await send('DELETE', 'redemptions/D', undefined, { 'idempotency-key': 'void' });
    const voidedAgain = await send('DELETE', 'redemptions/D', undefined, { 'idempotency-key': 'void' });
    expect([voided.statusCode, voidedAgain.statusCode]).toEqual([204, 204]);
  });

  test('a redemption that was answered to a customer is judged at that time, and is accepted over the limit', async () => {
    await coupon({ code: 'TAKEN', percent_off: 20, usage_limit: 1, end_date: '2030-01-01T00:00:00Z' });
    await redeem({ order: 'T-1', code: 'TAKEN' });
    const late = { order: 'T-2', code: 'TAKEN' };
    expect((await redeem(late)).json()).toMatchObject({ reasons: ['usage_limit_reached'] });
    const made = await redeem({ ...late, answered_at: '2026-01-01T00:00:00Z' });
    expect(made.json()).toMatchObject({
      data: { over_limit: true, redeemed_at: '2026-01-01T00:00:00+00:00' },
    });
    const early = await redeem({ order: 'T-3', code: 'TAKEN', answered_at: 'yesterday' });
    expect(faultsOf(early)).toEqual(['answered_at not_a_datetime']);
  });

  test('a redemption that was answered meanwhile repeats its first request under the same idempotency key', async () => {
    const key = { 'idempotency-key': 'answered' };
    const made = await redeem({ order: 'E' }, key);
    const again = await redeem({ order: 'E', answered_at: '2026-01-01T00:00:00Z' }, key);
    expect([again.statusCode, again.body]).toEqual([201, made.body]);
    const other = await redeem({ order: 'E', items: [{ product_key: 'EDITOR', amount: 1 }] }, key);
    expect(other.json()).toMatchObject({ code: 'idempotency_key_reused' });
  });

  test('redemptions are listed by coupon, oldest first', async () => {
    const id = await coupon({ code: 'LISTED', amount_off: 100 });
    for (const order of ['L-1', 'L-2', 'L-3']) await redeem({ order, code: 'LISTED' });
    await send('DELETE', 'redemptions/L-2');
    const listed = await send('GET', `redemptions?coupon_id=${id}&limit=1`);
    expect(listed.json()).toMatchObject({
      data: { redemptions: [{ order: 'L-1', coupon_id: id, discount: 100 }] },
    });
    expect(listed.headers).toMatchObject({
      'x-total-count': '2',
      link: expect.stringContaining(`</agent/v1/redemptions?coupon_id=${id}&limit=1&cursor=`) as string,
    });
    expect(faultsOf(await send('GET', 'redemptions'))).toEqual(['coupon_id required']);
    expect((await send('GET', 'redemptions?coupon_id=LISTED')).json()).toMatchObject({
      errors: [{ detail: 'coupon_id must be an integer.' }],
    });
  });

  test.each([
    ['too long', 'x'.repeat(101)],
    ['with control characters', 'A\n1'],
    ['that a URL would drop', '..'],
  ])('a redemption for an order id %s is refused', async (_, order) => {
    const answer = await redeem({ order });
    expect([answer.statusCode, faultsOf(answer)]).toEqual([422, ['order malformed']]);
  });

  test('a redemption reports the errors of order and cart at once', async () => {
    const answer = await redeem({ order: undefined, items: [{ product_key: 'THEIRS', amount: -1 }] });
    expect(faultsOf(answer)).toEqual(['order required', 'items[0].amount out_of_range']);
  });

  test('a redemption of an order id with 100 characters is found by its path', async () => {
    const order = '単'.repeat(100);
    const made = await redeem({ order });
    const read = await server.inject({ url: String(made.headers['location']), headers });
    expect([made.statusCode, read.statusCode]).toEqual([201, 200]);
  });

  test('a redemption is visible only to its own account', async () => {
    await redeem({ order: 'OURS' });
    const accountId = await otherAccount();
    const times = { createdAt: 0, lastUsedAt: null, expiresAt: null };
    const token = { tokenId: 't', productKey: null, label: null, accountId, ...times };
    const scopes = ['coupons:read', 'coupons:write'] as const;
    await opened.write(({ tokens }) => tokens.add({ ...token, scopes }, opened.app.digest('lk_tok_other')));
    const theirs = { authorization: 'Bearer lk_tok_other' };
    for (const method of ['GET', 'DELETE'] as const) {
      const answer = await server.inject({ method, url: '/agent/v1/redemptions/OURS', headers: theirs });
      expect(answer.statusCode).toBe(404);
    }
    const listed = await server.inject({
      url: `/agent/v1/redemptions?coupon_id=${couponId}`,
      headers: theirs,
    });
    expect(listed.json()).toEqual({ data: { redemptions: [] } });
    const payload = { ...cart, order: 'OURS' };
    const redeemed = await server.inject({
      method: 'POST',
      url: '/agent/v1/redemptions',
      headers: theirs,
      payload,
    });
    expect(faultsOf(redeemed)).toEqual(['items[0].product_key product_not_found']);
  });
});
