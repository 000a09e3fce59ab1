import type { LightMyRequestResponse } from 'fastify';
import { expect, test } from 'vitest';
import { adminToken, apiKey, openApp, serverOf } from '../../../support/app/http-app.ts';

test('a cart with an archived product is refused, but a repeated redemption from before is not', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  const admin = async (method: 'POST' | 'PUT', path: string, payload: object): Promise<void> => {
    const headers = { authorization: `Bearer ${adminToken}` };
    const answer = await server.inject({ method, url: `/admin/v1/${path}`, headers, payload });
    expect(answer.statusCode).toBeLessThan(300);
  };
  const post = (path: string, payload: object): Promise<LightMyRequestResponse> =>
    server.inject({ method: 'POST', url: path, headers: { 'service-api-key': apiKey }, payload });
  await admin('POST', 'products', { name: 'Editor', product_key: 'EDITOR' });
  await admin('POST', 'products', { name: 'Old', product_key: 'OLD' });
  await post('/api/v2/coupons', { code: 'SPRING', coupon_type: 'multi', percent_off: 20 });
  const line = { product_key: 'EDITOR', amount: 100 };
  const cart = { code: 'SPRING', items: [line, { ...line, product_key: 'OLD' }] };
  const before = await post('/agent/v1/redemptions', { ...cart, order: 'BEFORE' });
  expect(before.statusCode).toBe(201);

  const archive = (archived: boolean): Promise<void> =>
    admin('PUT', 'products/OLD', { name: 'Old', recurring: false, archived });
  await archive(true);
  const refusal = {
    status: 409,
    code: 'product_archived',
    errors: [{ parameter: 'items[1].product_key', code: 'product_archived' }],
  };
  expect((await post('/agent/v1/quote', cart)).json()).toMatchObject(refusal);
  expect((await post('/agent/v1/redemptions', { ...cart, order: 'NEW' })).json()).toMatchObject(refusal);
  const again = await post('/agent/v1/redemptions', { ...cart, order: 'BEFORE' });
  expect([again.statusCode, again.json()]).toEqual([200, before.json()]);

  await archive(false);
  expect((await post('/agent/v1/quote', cart)).json()).toMatchObject({ data: { discount: 40 } });
});
