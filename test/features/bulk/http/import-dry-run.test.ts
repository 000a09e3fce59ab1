import { afterEach, beforeEach, expect, test } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { adminToken, openApp, serverOf, type TestApp } from '../../../support/app/http-app.ts';

let opened: TestApp;
let server: FastifyInstance;
beforeEach(async () => {
  opened = await openApp();
  server = serverOf(opened.app);
  await post('products', { name: 'Press', product_key: 'press' });
});
afterEach(() => opened[Symbol.asyncDispose]());

const headers = { authorization: `Bearer ${adminToken}` };

async function post(path: string, payload: object): Promise<unknown> {
  const answer = await server.inject({ method: 'POST', url: `/admin/v1/${path}`, headers, payload });
  return answer.json<{ data: unknown }>().data;
}

const bought = (licenseKey: string, more: object = {}): object => ({
  license_key: licenseKey,
  product_key: 'press',
  buyer_email: 'buyer@example.com',
  ...more,
});
const multi = (code: string, more: object = {}): object => ({
  code,
  coupon_type: 'multi',
  percent_off: 10,
  ...more,
});

test.each([
  ['a purchase id', 'purchases', [bought('A', { purchase_id: 'p' }), bought('B', { purchase_id: 'p' })]],
  ['a key', 'purchases', [bought('A', { purchase_id: 'p' }), bought('A', { purchase_id: 'q' })]],
  ['a purchase', 'purchases', [bought('A', { purchase_id: 'p' }), bought('A', { purchase_id: 'p' })]],
  ['a purchase without an id', 'purchases', [bought('A'), bought('A')]],
  ['a coupon id', 'coupons', [multi('A', { id: 5 }), multi('B', { id: 5 })]],
  ['a code', 'coupons', [multi('A', { id: 5 }), multi('a', { id: 6 })]],
  ['a coupon', 'coupons', [multi('A', { id: 5 }), multi('A', { id: 5 })]],
])('a dry run reports %s that occurs twice, as the import does', async (_, noun, rows) => {
  const tried = await post(`${noun}/import?dry_run=true`, { [noun]: rows });
  expect(tried).toMatchObject({ imported: 1 });
  expect(await post(`${noun}/import`, { [noun]: rows })).toEqual(tried);
});

test('an imported purchase without a date gets the date of its license, so that its export has the date', async () => {
  await post('licenses/import', { licenses: [bought('A', { date: '2024-02-22T11:23:05Z' })] });
  const purchases = [bought('A', { purchase_id: 'p' })];
  expect(await post('purchases/import', { purchases })).toMatchObject({ imported: 1 });
  const answer = await server.inject({ url: '/admin/v1/purchases/p', headers });
  expect(answer.json()).toMatchObject({ data: { date: '2024-02-22T11:23:05+00:00' } });
});
