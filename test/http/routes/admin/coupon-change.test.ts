import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LightMyRequestResponse } from 'fastify';
import { dataOf, openApp, type TestApp } from '../../../support/app/http-app.ts';
import { product } from '../../../support/builders/store-builders.ts';
import { buildTerms } from '../../../support/builders/coupon-builders.ts';

let opened: TestApp;
beforeEach(async () => {
  opened = await openApp();
  await send('POST', '/admin/v1/products', { name: 'One', product_key: 'ONE' });
});
afterEach(() => opened[Symbol.asyncDispose]());

const send: TestApp['send'] = (...call) => opened.send(...call);

const terms = { coupon_type: 'multi', percent_off: 20, code: 'Spring' };

async function create(more: object = {}): Promise<number> {
  const made = await send('POST', '/api/v2/coupons', { ...terms, ...more });
  return (await dataOf<{ id: number }>(made)).id;
}

async function redeem(code: string, order: string): Promise<void> {
  const items = [{ product_key: 'ONE', amount: 1000 }];
  const redeemed = await send('POST', '/agent/v1/redemptions', { order, code, items });
  expect(redeemed.statusCode).toBe(201);
}

const change = (id: number, payload: object): Promise<LightMyRequestResponse> =>
  send('PUT', `/admin/v1/coupons/${id}`, payload);
const outcome = (answer: LightMyRequestResponse): unknown[] => {
  const { code, errors = [] } = answer.json<{ code: string; errors?: { parameter: string }[] }>();
  return [answer.statusCode, code, ...errors.map(({ parameter }) => parameter)];
};

test('a change replaces all terms of a coupon, and omitted terms are removed', async () => {
  const id = await create({ usage_limit: 5, notes: 'for friends', end_date: '2030-01-01T00:00:00Z' });
  const changed = await change(id, {
    ...terms,
    code: 'SUMMER',
    amount_off: 5,
    percent_off: null,
    usage_limit: 9,
  });
  const expected = {
    id,
    coupon_type: 'multi',
    percent_off: null,
    amount_off: 5,
    code: 'SUMMER',
    start_date: null,
    end_date: null,
    product_key: null,
    collection_id: null,
    minimum_purchase_amount: null,
    usage_limit: 9,
    notes: null,
  };
  expect([changed.statusCode, changed.json()]).toEqual([200, { data: expected }]);
  expect((await send('GET', `/api/v2/coupons/${id}`)).json()).toEqual({ data: expected });
});

test('a redeemed coupon keeps its code, scope and discount, and its other terms may change', async () => {
  const id = await create();
  await redeem('SPRING', 'A-1');
  const all = { code: 'X', coupon_type: 'single', product_key: 'ONE', amount_off: 5 };
  expect(outcome(await change(id, all))).toEqual([
    409,
    'coupon_redeemed',
    'code',
    'coupon_type',
    'amount_off',
  ]);
  expect(outcome(await change(id, { ...terms, code: 'SPRING' }))).toEqual([409, 'coupon_redeemed', 'code']);
  expect(outcome(await change(id, { ...terms, percent_off: 20.5 }))).toEqual([
    409,
    'coupon_redeemed',
    'percent_off',
  ]);
  const more = { usage_limit: 1, end_date: '2030-01-01T00:00:00Z', minimum_purchase_amount: 9, notes: 'x' };
  const changed = await change(id, { ...terms, ...more });
  expect(changed.json()).toMatchObject({ data: { ...more, end_date: '2030-01-01T00:00:00+00:00' } });
  await send('DELETE', '/agent/v1/redemptions/A-1');
  expect((await change(id, all)).statusCode).toBe(200);
});

test('a change of a coupon is refused for the same reasons as a creation', async () => {
  const id = await create();
  await create({ code: 'Taken' });
  await send('POST', '/admin/v1/products', { name: 'Monthly', product_key: 'MONTHLY', recurring: true });
  expect(outcome(await change(id, { ...terms, code: 'TAKEN' }))).toEqual([409, 'coupon_code_taken']);
  const single = { ...terms, coupon_type: 'single' };
  expect(outcome(await change(id, { ...single, product_key: 'none' }))).toEqual([
    422,
    'parameters_invalid',
    'product_key',
  ]);
  expect(outcome(await change(id, { ...single, product_key: 'MONTHLY' }))).toEqual([
    422,
    'product_is_recurring',
    'product_key',
  ]);
  expect(outcome(await change(id, { ...terms, amount_off: 5, end_dat: 'x' }))).toEqual([
    422,
    'parameters_invalid',
    'end_dat',
    'amount_off',
  ]);
  expect(outcome(await change(id, { ...single, product_key: 'none', percent_off: 101 }))).toEqual([
    422,
    'parameters_invalid',
    'percent_off',
    'product_key',
  ]);
  expect((await change(id, { ...terms, code: 'SPRING' })).statusCode).toBe(200);
});

test('a coupon keeps its product even after the product got a recurring price', async () => {
  const single = { ...terms, coupon_type: 'single', product_key: 'ONE' };
  const id = await create(single);
  await send('PUT', '/admin/v1/products/ONE', { name: 'One', recurring: true, archived: false });
  expect((await change(id, { ...single, notes: 'still mine' })).statusCode).toBe(200);
});

test('ending a coupon ends it now and only once, and removes the start of a coupon that has not started', async () => {
  const end = async (id: number): Promise<{ start_date: string | null; end_date: string | null }> => {
    const answer = await send('POST', `/admin/v1/coupons/${id}/end`);
    expect(answer.statusCode).toBe(200);
    return answer.json<{ data: { start_date: string | null; end_date: string | null } }>().data;
  };
  const ended = await end(await create({ end_date: '2090-01-01T00:00:00Z' }));
  expect(Math.abs(Date.parse(ended.end_date ?? '') - Date.now())).toBeLessThan(10_000);
  const scheduled = await end(await create({ code: 'LATER', start_date: '2090-01-01T00:00:00Z' }));
  expect(scheduled).toMatchObject({ start_date: null, end_date: expect.any(String) as string });
  const startDate = new Date().toISOString();
  const begun = await end(await create({ code: 'BEGUN', start_date: startDate }));
  // In the second of its start the coupon would end before it starts, because clients read whole seconds.
  expect(Date.parse(begun.start_date ?? '1970-01-01')).toBeLessThan(Date.parse(begun.end_date ?? ''));
  const past = await end(await create({ code: 'PAST', end_date: '2020-01-01T00:00:00Z' }));
  expect(past.end_date).toBe('2020-01-01T00:00:00+00:00');
});

test('a coupon can be deleted while no order has used it, and its code is free again', async () => {
  const id = await create();
  await redeem('SPRING', 'A-1');
  expect(outcome(await send('DELETE', `/admin/v1/coupons/${id}`))).toEqual([409, 'coupon_redeemed']);
  await send('DELETE', '/agent/v1/redemptions/A-1');
  const deleted = await send('DELETE', `/admin/v1/coupons/${id}`);
  expect([deleted.statusCode, deleted.json()]).toMatchObject([200, { data: { id, code: 'Spring' } }]);
  expect(outcome(await send('GET', `/api/v2/coupons/${id}`))).toEqual([404, 'coupon_not_found']);
  expect(await create()).toBeGreaterThan(id);
});

test.each([
  ['PUT', ''],
  ['POST', '/end'],
  ['DELETE', ''],
] as const)('%s …%s of an unknown coupon is not found', async (method, rest) => {
  for (const id of ['7', '-1', 'x', '99999999999999999999']) {
    const body = method === 'PUT' ? terms : undefined;
    expect(outcome(await send(method, `/admin/v1/coupons/${id}${rest}`, body))).toEqual([
      404,
      'coupon_not_found',
    ]);
  }
});

test('an agent does not change coupons, because they belong to its upstream', async () => {
  await using agent = await openApp({ role: 'agent' });
  for (const [method, url] of [
    ['PUT', '/admin/v1/coupons/1'],
    ['POST', '/admin/v1/coupons/1/end'],
    ['DELETE', '/admin/v1/coupons/1'],
  ] as const) {
    expect(outcome(await agent.send(method, url))).toEqual([409, 'not_the_authority']);
  }
});

test('an agent says that it counts only its own redemptions, and an authority does not', async () => {
  for (const [role, scope] of [
    ['agent', { scope: 'this_agent' }],
    ['authority', {}],
  ] as const) {
    await using agentOrAuthority = await openApp({ role });
    await agentOrAuthority.send('POST', '/api/v2/coupons', terms);
    const listed = await agentOrAuthority.send('GET', '/agent/v1/coupons');
    const counted = { ...terms, id: 1, redemptions: 0, state: 'active' };
    const { coupons } = await dataOf<{ coupons: object[] }>(listed);
    expect(coupons).toMatchObject([{ ...counted, ...scope }]);
    expect(await dataOf(agentOrAuthority.send('GET', '/agent/v1/coupons/1'))).toStrictEqual({
      ...coupons[0],
      orders: [],
    });
    expect('scope' in (coupons[0] ?? {})).toBe(role === 'agent');
  }
});

const page = { limit: 10, offset: 0 };
const known = [
  buildTerms({ code: 'Active' }),
  buildTerms({ code: 'LATER', startAt: Date.UTC(2090, 0) }),
  buildTerms({ code: 'OVER', endAt: Date.UTC(2020, 0), usageLimit: 1 }),
  buildTerms({ code: 'USED', usageLimit: 1 }),
  buildTerms({ code: 'ONE', scope: { type: 'single', productKey: 'ONE' } }),
];

async function addKnown({ write }: Pick<TestApp, 'write'>): Promise<void> {
  await write(async ({ products, coupons }) => {
    await products.add({ ...product, productKey: 'ONE' }, 'digest');
    for (const each of known) await coupons.add('default', each);
  });
}

test('coupons are listed by code, product and state', async () => {
  await using app = await openApp();
  await addKnown(app);
  const payload = { code: 'USED', order: 'A-1', items: [{ product_key: 'ONE', amount: 100 }] };
  await app.send('POST', '/agent/v1/redemptions', payload);
  const codes = async (query: string): Promise<[string | undefined, string[]]> => {
    const answer = await app.send('GET', `/agent/v1/coupons?${query}`);
    const { coupons } = await dataOf<{ coupons: { code: string }[] }>(answer);
    return [answer.headers['x-total-count']?.toString(), coupons.map(({ code }) => code)];
  };
  expect(await codes('state=active')).toEqual(['2', ['Active', 'ONE']]);
  expect(await codes('state=active&limit=1&offset=1')).toEqual(['2', ['ONE']]);
  expect(await codes('state=scheduled')).toEqual(['1', ['LATER']]);
  expect(await codes('state=ended')).toEqual(['1', ['OVER']]);
  expect(await codes('state=used_up')).toEqual(['1', ['USED']]);
  for (const code of ['active', 'ACTIVE']) expect(await codes(`code=${code}`)).toEqual(['1', ['Active']]);
  expect(await codes('product_key=ONE')).toEqual(['1', ['ONE']]);
  expect((await app.send('GET', '/agent/v1/coupons?state=none')).statusCode).toBe(422);
});

test('coupons are listed by state in the mirror of an agent, too', async () => {
  await using agent = await openApp({ role: 'agent' });
  const { mirror } = agent.agentTables();
  await addKnown(agent);
  const payload = { code: 'USED', order: 'A-1', items: [{ product_key: 'ONE', amount: 100 }] };
  await agent.send('POST', '/agent/v1/redemptions', payload);
  for (const [index, each] of known.entries()) {
    mirror.put({ coupon: { ...each, id: index + 1 }, confirmedAt: 0 });
  }
  for (const [is, expected] of [
    ['active', ['Active', 'ONE']],
    ['scheduled', ['LATER']],
    ['ended', ['OVER']],
    ['used_up', ['USED']],
  ] as const) {
    const filter = { state: { is, at: Date.now() } };
    expect(mirror.list(page, filter).map(({ coupon }) => coupon.code)).toEqual(expected);
    expect(mirror.count(filter)).toBe(expected.length);
  }
});
