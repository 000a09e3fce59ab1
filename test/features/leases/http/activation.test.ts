import { afterAll, beforeAll, expect, test } from 'vitest';
import { done } from '../../../../src/domain/problem/problem.ts';
import type { LeaseIssuer } from '../../../../src/features/leases/service/ports.ts';
import { buildActivation } from '../support/activation-builders.ts';
import { asAdmin, openApp, serverOf, type TestApp } from '../../../support/app/http-app.ts';

const signed: unknown[] = [];
const issuer: LeaseIssuer = {
  answer: async () => done(null),
  statement: async () => done('k'),
  async sign(...request) {
    signed.push(request);
    return done({ lease: 'a.b.c', keys: 'k' });
  },
  status: async () => null,
  host: () => null,
  stopWaiting: () => undefined,
};

let opened: TestApp;
let seller: { authorization: string };

type Json = { data: Record<string, unknown> };

async function call(
  method: 'GET' | 'POST',
  path: string,
  headers: object,
  payload?: object,
): Promise<{ status: number; code: unknown; data: Record<string, unknown> }> {
  const response = await opened.send(method, path, payload, headers);
  const body = response.json<Json & { code?: string }>();
  return { status: response.statusCode, code: body.code, data: body.data };
}

beforeAll(async () => {
  opened = await openApp({ leaseIssuer: issuer });
  const account = await call('POST', 'accounts', asAdmin, { name: 'Seller' });
  const account_id = String(account.data['account_id']);
  const token = await call('POST', 'tokens', asAdmin, { scopes: ['admin'], account_id });
  seller = { authorization: `Bearer ${String(token.data['token'])}` };
  await call('POST', 'products', asAdmin, { name: 'Own', product_key: 'own', account_id });
  await call('POST', 'products', asAdmin, { name: 'Foreign', product_key: 'foreign' });
  for (const [product_key, license_key] of [
    ['own', 'OWN-1'],
    ['foreign', 'FOREIGN-1'],
  ]) {
    await call('POST', 'purchases', asAdmin, { product_key, license_key, buyer_email: 'a@example.com' });
  }
  await opened.write(async ({ activations }) => {
    for (const [number, productKey] of ['own', 'own', 'foreign', 'foreign'].entries()) {
      const activation = buildActivation({
        activationId: `act-${number}`,
        device: `device-${number}`,
        productKey,
        licenseKey: `${productKey.toUpperCase()}-1`,
      });
      await activations.put(activation);
    }
  });
});
afterAll(() => opened[Symbol.asyncDispose]());

const idsOf = ({ data }: { data: Record<string, unknown> }): unknown[] =>
  (data['activations'] as { activation_id: string }[]).map(({ activation_id: id }) => id);

test('a token of an account sees the activations of its products only', async () => {
  expect(idsOf(await call('GET', 'activations', asAdmin))).toEqual(['act-0', 'act-1', 'act-2', 'act-3']);
  expect(idsOf(await call('GET', 'activations', seller))).toEqual(['act-0', 'act-1']);
  expect(idsOf(await call('GET', 'activations?product_key=own', seller))).toEqual(['act-0', 'act-1']);
  expect(idsOf(await call('GET', 'activations?product_key=foreign', seller))).toEqual([]);
  expect(idsOf(await call('GET', 'activations?license_key=foreign-1', seller))).toEqual([]);
  expect(await call('GET', 'activations/act-0', seller)).toMatchObject({ status: 200 });
  for (const [method, path] of [
    ['GET', 'activations/act-2'],
    ['POST', 'activations/act-2/end'],
    ['POST', 'activations/act-2/block'],
    ['GET', 'activations/none'],
  ] as const) {
    expect(await call(method, path, seller), path).toMatchObject({
      status: 404,
      code: 'activation_not_found',
    });
  }
  expect(await call('GET', 'activations/act-2', asAdmin)).toMatchObject({ data: { state: 'active' } });
});

test('activations are listed in pages that follow each other', async () => {
  const first = await opened.send('GET', 'activations?limit=3');
  expect(first.headers['x-total-count']).toBe('4');
  const next = /<([^>]+)>/.exec(String(first.headers['link']))?.[1] ?? '';
  const second = await opened.send('GET', next);
  expect(idsOf(second.json())).toEqual(['act-3']);
  expect(second.headers['link']).toBeUndefined();
});

test('a request file is signed for the account of the token, until the end of a day', async () => {
  signed.length = 0;
  const json = { request: ' x.y.z\n', until: '2027-06-30' };
  expect(await call('POST', 'leases', seller, json)).toMatchObject({
    status: 200,
    data: { lease: 'a.b.c' },
  });
  const options = { until: Date.parse('2027-06-30T23:59:59Z'), accountId: expect.stringMatching(/./) };
  expect(signed).toMatchObject([['x.y.z', options, { actor: expect.stringMatching(/^token:/) }]]);
  await call('POST', 'leases', asAdmin, { request: 'x.y.z' });
  expect(signed[1]).toMatchObject(['x.y.z', { until: null, accountId: null }, {}]);
});

test.each([
  ['no request', {}, 'parameters_invalid'],
  ['no date', { request: 'x', until: 'tomorrow' }, 'parameters_invalid'],
  ['a day that does not exist', { request: 'x', until: '2027-02-30' }, 'parameters_invalid'],
  ['a request of more than 8 KiB', { request: 'x'.repeat(8_193) }, 'parameters_invalid'],
])('a request file with %s is refused', async (_, json, code) => {
  expect(await call('POST', 'leases', asAdmin, json)).toMatchObject({ status: 422, code });
});

test('a holder has no activations of others', async () => {
  const holder = serverOf({ ...opened.app, role: 'holder', leaseIssuer: null });
  for (const [method, url] of [
    ['GET', '/activations'],
    ['GET', '/activations/act-0'],
    ['POST', '/activations/act-0/end'],
    ['POST', '/leases'],
  ] as const) {
    const payload = url === '/leases' ? { payload: { request: 'x' } } : {};
    const answer = await holder.inject({ method, url: `/admin/v1${url}`, headers: asAdmin, ...payload });
    expect(answer.json(), url).toMatchObject({ status: 409, code: 'not_an_issuer' });
  }
});
