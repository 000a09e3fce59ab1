import type { FastifyInstance } from 'fastify';
import { describe, expect, test } from 'vitest';
import { formatDatetime } from '../../../../src/domain/time.ts';
import { adminToken, openApp, serverOf } from '../../../support/app/http-app.ts';

const headers = { authorization: `Bearer ${adminToken}` };
const day = 86_400_000;

type Sent = Readonly<Record<string, unknown>>;
type Answer = { status: number; data: Record<string, unknown>; faults: string[] };

async function open() {
  const opened = await openApp();
  const server: FastifyInstance = serverOf(opened.app);
  const send = async (
    method: 'POST' | 'PUT' | 'GET',
    path: string,
    payload?: Sent,
    more: object = {},
  ): Promise<Answer> => {
    const sent = {
      method,
      url: path,
      headers: { ...headers, ...more },
      ...(payload !== undefined && { payload }),
    };
    const response = await server.inject(sent);
    const { data = {}, errors = [] } = response.json<{
      data?: Record<string, unknown>;
      errors?: { parameter: string; code: string }[];
    }>();
    return {
      status: response.statusCode,
      data,
      faults: errors.map((each) => `${each.parameter} ${each.code}`),
    };
  };
  const product = await send('POST', '/admin/v1/products', { name: 'Editor', product_key: 'EDIT' });
  const secret = String(product.data['secret']);
  const sell = async (licenseKey: string, terms: Sent) =>
    await send('POST', '/admin/v1/purchases', {
      product_key: 'EDIT',
      buyer_email: 'a@example.com',
      license_key: licenseKey,
      ...terms,
    });
  const ask = async (path: string, licenseKey: string, method: 'GET' | 'PUT' = 'GET') => {
    const own = { 'product-secret-key': secret, authorization: '' };
    const url = `/api/v2/license/${path}`;
    return method === 'GET'
      ? await send('GET', `${url}?license_key=${licenseKey}`, undefined, own)
      : await send('PUT', url, { license_key: licenseKey }, own);
  };
  return {
    opened,
    send,
    sell,
    verify: async (licenseKey: string) => (await ask('verify', licenseKey)).data,
    use: async (licenseKey: string) => await ask('usage', licenseKey, 'PUT'),
    update: async (licenseKey: string, terms: Sent) =>
      await send('PUT', `/admin/v1/licenses/${licenseKey}`, terms),
    renew: async (licenseKey: string, span: unknown, more: object = {}) =>
      await send('POST', `/admin/v1/licenses/${licenseKey}/renew`, { for: span }, more),
    shown: async (licenseKey: string) => (await send('GET', `/admin/v1/licenses/${licenseKey}`)).data,
    [Symbol.asyncDispose]: async () => await opened[Symbol.asyncDispose](),
  };
}

function inDays(days: number): string {
  return `${new Date(Date.now() + days * day).toISOString().slice(0, 19)}+00:00`;
}

describe('the terms of a license', () => {
  test('are sold with it, shown by a verify, and absent from a license without terms', async () => {
    await using shop = await open();
    const sold = await shop.sell('KEY-1', {
      expires_at: '2999-12-31',
      entitlements: ['pro', 'export', 'pro'],
      metadata: { order: 7 },
      seats: 5,
      lease_term_s: 604_800,
      uses_limit: 2,
    });
    expect(sold.status).toBe(201);
    const terms = {
      expires_at: '2999-12-31T23:59:59+00:00',
      uses_limit: 2,
      entitlements: ['export', 'pro'],
      metadata: { order: 7 },
      seats: 5,
      lease_term_s: 604_800,
    };
    expect(await shop.verify('KEY-1')).toMatchObject({ enabled: true, status: 'active', ...terms });
    await shop.sell('KEY-2', {});
    expect(Object.keys(await shop.verify('KEY-2'))).toEqual([
      'license_key',
      'enabled',
      'product_link',
      'buyer_email',
      'uses',
      'date',
    ]);
  });

  test('end it for programs, while its seller still sees it enabled', async () => {
    await using shop = await open();
    await shop.sell('KEY-1', { expires_at: inDays(-1) });
    expect(await shop.verify('KEY-1')).toMatchObject({ enabled: false, status: 'expired' });
    expect(await shop.shown('KEY-1')).toMatchObject({
      state: 'ended',
      license: { enabled: true, status: 'expired' },
    });
    const { data } = await shop.send('GET', '/admin/v1/licenses');
    expect(data).toMatchObject({ licenses: [{ state: 'ended', enabled: true, status: 'expired' }] });
  });

  test('of the product count for new licenses, and its grace for all', async () => {
    await using shop = await open();
    const endsAt = inDays(-1);
    await shop.sell('OLD', { expires_at: endsAt });
    const product = { name: 'Editor', recurring: false, archived: false };
    const terms = { license_for: '1y', entitlements: ['pro'], expiry_grace_s: 7 * 86_400 };
    const updated = await shop.send('PUT', '/admin/v1/products/EDIT', { ...product, ...terms });
    expect(updated.data).toMatchObject(terms);
    expect(await shop.verify('OLD')).toMatchObject({
      enabled: true,
      status: 'grace',
      grace_until: formatDatetime(Date.parse(endsAt) + 7 * day),
    });
    await shop.sell('NEW', { date: '2024-02-29T10:00:00Z' });
    expect(await shop.verify('NEW')).toMatchObject({
      expires_at: '2025-02-28T10:00:00+00:00',
      entitlements: ['pro'],
    });
    await shop.sell('OWN', { expires_at: 'none', entitlements: [] });
    expect(await shop.verify('OWN')).not.toHaveProperty('status');
  });

  test('are changed one by one, and removed by none', async () => {
    await using shop = await open();
    await shop.sell('KEY-1', { expires_at: '2999-12-31', entitlements: ['pro'], seats: 2 });
    const updated = await shop.update('KEY-1', { expires_at: 'none', seats: 'none', metadata: '{"a": 1}' });
    expect(updated.data).toMatchObject({ expires_at: null, entitlements: ['pro'], metadata: { a: 1 } });
    expect(updated.data).not.toHaveProperty('seats');
    const bare = await shop.update('KEY-1', { entitlements: [], metadata: {} });
    expect(bare.data).not.toHaveProperty('status');
    const { revision } = (await shop.opened.app.reader.licenses.get('KEY-1')) ?? {};
    await shop.update('KEY-1', { entitlements: [] });
    expect((await shop.opened.app.reader.licenses.get('KEY-1'))?.revision).toBe(revision);
    const { data } = await shop.send('GET', '/admin/v1/licenses/KEY-1/history');
    expect(data).toMatchObject({
      changes: [
        { change: 'update', after: { expires_at: null } },
        {
          change: 'update',
          before: { expires_at: '2999-12-31T23:59:59+00:00' },
          after: { expires_at: null },
        },
      ],
    });
    expect(await shop.opened.record()).toContainEqual(
      expect.stringMatching(/license.update \| …\S+ \| product EDIT/),
    );
  });

  test.each<[string, Sent, string]>([
    ['a day that does not exist', { expires_at: '2030-02-30' }, 'expires_at not_a_datetime'],
    ['an entitlement with a space', { entitlements: ['a b'] }, 'entitlements malformed'],
    [
      '51 entitlements',
      { entitlements: Array.from({ length: 51 }, (_, each) => `e${each}`) },
      'entitlements malformed',
    ],
    ['metadata that is a list', { metadata: [1] }, 'metadata malformed'],
    ['metadata that is too long', { metadata: { a: 'x'.repeat(4_096) } }, 'metadata malformed'],
    ['no seat', { seats: 0 }, 'seats out_of_range'],
    ['a negative limit', { uses_limit: -1 }, 'uses_limit out_of_range'],
    ['a lease that is renewed after it has expired', { lease_term_s: 3_600 }, 'lease_term_s out_of_range'],
    ['an unknown member', { expires: '2030-01-01' }, 'expires unknown'],
  ])('are refused with one fault for %s, and nothing changes', async (_, terms, fault) => {
    await using shop = await open();
    await shop.sell('KEY-1', {});
    const before = await shop.opened.app.reader.licenses.get('KEY-1');
    expect(await shop.update('KEY-1', terms)).toMatchObject({ status: 422, faults: [fault] });
    expect(await shop.opened.app.reader.licenses.get('KEY-1')).toEqual(before);
  });
});

describe('a renewal', () => {
  test('goes on from the end of a license, and from now if it has ended', async () => {
    await using shop = await open();
    await shop.sell('KEY-1', { expires_at: '2999-01-31' });
    expect((await shop.renew('KEY-1', '1mo')).data).toMatchObject({
      expires_at: '2999-02-28T23:59:59+00:00',
    });
    await shop.sell('KEY-2', { expires_at: inDays(-400) });
    const { data } = await shop.renew('KEY-2', '30d');
    expect(data).toMatchObject({ enabled: true, status: 'active' });
    const endsIn = Date.parse(String(data['expires_at'])) - Date.now();
    expect(Math.round(endsIn / day)).toBe(30);
    expect(await shop.opened.record()).toContainEqual(
      expect.stringMatching(/license.renew \| …\S+ \| product EDIT, until 2999-02-28/),
    );
  });

  test('is made once under its Idempotency-Key', async () => {
    await using shop = await open();
    await shop.sell('KEY-1', { expires_at: '2999-01-31' });
    const once = { 'idempotency-key': 'renewal-1' };
    const first = await shop.renew('KEY-1', '1y', once);
    expect(await shop.renew('KEY-1', '1y', once)).toEqual(first);
    expect(await shop.verify('KEY-1')).toMatchObject({ expires_at: '3000-01-31T23:59:59+00:00' });
  });

  test('is refused for a license without an end, an unknown key and a span that is none', async () => {
    await using shop = await open();
    await shop.sell('KEY-1', {});
    expect(await shop.renew('KEY-1', '1y')).toMatchObject({ status: 422, faults: ['for never_ends'] });
    expect(await shop.renew('KEY-2', '1y')).toMatchObject({ status: 404 });
    for (const span of ['1 year', '2030-12-31', '-1y', '1.5y', '0d', 1])
      expect(await shop.renew('KEY-1', span)).toMatchObject({ status: 422, faults: ['for malformed'] });
  });
});

test('a use beyond the limit is refused with 409 and counts nothing', async () => {
  await using shop = await open();
  await shop.sell('KEY-1', { uses_limit: 1 });
  expect(await shop.use('KEY-1')).toMatchObject({ status: 200, data: { uses: 1, uses_limit: 1 } });
  expect(await shop.use('KEY-1')).toMatchObject({ status: 409 });
  expect(await shop.verify('KEY-1')).toMatchObject({ uses: 1 });
  await shop.update('KEY-1', { uses_limit: 2 });
  expect(await shop.use('KEY-1')).toMatchObject({ status: 200, data: { uses: 2 } });
});
