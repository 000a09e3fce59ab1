import { describe, expect, test } from 'vitest';
import { formatDatetime } from '../../../../src/domain/time.ts';
import { buildLicense } from '../../../support/builders/store-builders.ts';
import { asAdmin, openApp, type TestApp } from '../../../support/app/http-app.ts';

const day = 86_400_000;

type Sent = Readonly<Record<string, unknown>>;
type Answer = { status: number; data: Record<string, unknown>; faults: string[] };

async function open() {
  const opened = await openApp();
  const send = async (...call: Parameters<TestApp['send']>): Promise<Answer> => {
    const response = await opened.send(...call);
    const { data = {}, errors = [] } = response.json<{
      data?: Record<string, unknown>;
      errors?: { parameter: string; code: string }[];
    }>();
    const faults = errors.map(({ parameter, code }) => `${parameter} ${code}`);
    return { status: response.statusCode, data, faults };
  };
  const product = await send('POST', 'products', { name: 'Editor', product_key: 'EDIT' });
  const own = { 'product-secret-key': String(product.data['secret']) };
  return {
    opened,
    send,
    sell: async (licenseKey: string, terms: Sent) => {
      const sale = { product_key: 'EDIT', buyer_email: 'a@example.com', license_key: licenseKey };
      return await send('POST', 'purchases', { ...sale, ...terms });
    },
    verify: async (licenseKey: string) =>
      (await send('GET', `/api/v2/license/verify?license_key=${licenseKey}`, undefined, own)).data,
    use: async (licenseKey: string) =>
      await send('PUT', '/api/v2/license/usage', { license_key: licenseKey }, own),
    update: async (licenseKey: string, terms: Sent) => await send('PUT', `licenses/${licenseKey}`, terms),
    renew: async (licenseKey: string, span: unknown, more: object = {}) =>
      await send('POST', `licenses/${licenseKey}/renew`, { for: span }, { ...asAdmin, ...more }),
    shown: async (licenseKey: string) => (await send('GET', `licenses/${licenseKey}`)).data,
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
    const { data } = await shop.send('GET', 'licenses');
    expect(data).toMatchObject({ licenses: [{ state: 'ended', enabled: true, status: 'expired' }] });
  });

  test('of the product count for new licenses, and its grace for all', async () => {
    await using shop = await open();
    const endsAt = inDays(-1);
    await shop.sell('OLD', { expires_at: endsAt });
    const product = { name: 'Editor', recurring: false, archived: false };
    const terms = { license_for: '1y', entitlements: ['pro'], expiry_grace_s: 7 * 86_400 };
    const updated = await shop.send('PUT', 'products/EDIT', { ...product, ...terms });
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

  test('of many licenses change in steps with the grace of the product, and those of new and changed ones at once', async () => {
    await using shop = await open();
    const { writer, reader } = shop.opened.app;
    const expiresAt = Date.UTC(2999, 0, 1);
    const keys = Array.from({ length: 1_001 }, (_, index) => `KEY-${1_000 + index}`);
    await shop.opened.write(async ({ licenses }) => {
      for (const licenseKey of keys)
        await licenses.add(buildLicense({ licenseKey, productKey: 'EDIT', expiresAt }));
    });
    const setGrace = async (days: number) => {
      const product = { name: 'Editor', recurring: false, archived: false };
      await shop.send('PUT', '/admin/v1/products/EDIT', { ...product, expiry_grace_s: days * 86_400 });
    };
    const graceOf = async (licenseKey: string) => {
      const { graceUntil = null, revision } = (await reader.licenses.get(licenseKey)) ?? {};
      return [graceUntil === null ? 0 : (graceUntil - expiresAt) / day, revision];
    };
    const takeStep = async () => {
      const step = await writer.write('spreadGrace', { limit: 500 });
      return step.ok && step.value.hasStepped;
    };
    await setGrace(7);
    expect(await graceOf('KEY-1499')).toEqual([7, 1]);
    expect(await graceOf('KEY-1500')).toEqual([0, 0]);
    await shop.update('KEY-1500', { seats: 2 });
    expect(await graceOf('KEY-1500')).toEqual([7, 1]);
    await takeStep();
    expect(await graceOf('KEY-1999')).toEqual([7, 1]);
    expect(await graceOf('KEY-2000')).toEqual([0, 0]);
    // Another grace begins anew.
    await setGrace(3);
    await shop.sell('KEY-0', { expires_at: '2998-12-31' });
    while (await takeStep());
    expect(await graceOf('KEY-1000')).toEqual([3, 2]);
    expect(await graceOf('KEY-1999')).toEqual([3, 2]);
    expect(await graceOf('KEY-2000')).toEqual([3, 1]);
    expect(await shop.verify('KEY-0')).toMatchObject({ grace_until: '2999-01-03T23:59:59+00:00' });
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
    const { data } = await shop.send('GET', 'licenses/KEY-1/history');
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

  test('moves the end of the grace as well, and ends in whole seconds', async () => {
    await using shop = await open();
    const product = { name: 'Editor', recurring: false, archived: false, expiry_grace_s: 7 * 86_400 };
    await shop.send('PUT', '/admin/v1/products/EDIT', product);
    await shop.sell('KEY-1', { expires_at: '2999-01-31' });
    expect((await shop.renew('KEY-1', '1mo')).data).toMatchObject({
      expires_at: '2999-02-28T23:59:59+00:00',
      grace_until: '2999-03-07T23:59:59+00:00',
    });
    await shop.sell('KEY-2', { expires_at: '2020-01-01T00:00:00.750Z' });
    const endOf = async () => (await shop.opened.app.reader.licenses.get('KEY-2'))?.expiresAt ?? Number.NaN;
    expect(await endOf()).toBe(Date.parse('2020-01-01T00:00:00Z'));
    await shop.renew('KEY-2', '1d');
    expect((await endOf()) % 1000).toBe(0);
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
