import { expect, test } from 'vitest';
import { formatDatetime } from '../../../../src/domain/time.ts';
import { licenseDetail, type ListedLicenseObject } from '../../../../src/wire/license.ts';
import { codeOf, dataOf, openApp, productsOf, type TestApp } from '../../../support/app/http-app.ts';
import { buildLicense, buildSnapshot, product } from '../../../support/builders/store-builders.ts';
import { buildOperation } from '../../../support/builders/operation-builders.ts';

const day = 86_400_000;
const now = Date.UTC(2026, 5, 1);

async function listed({ send }: TestApp, query: string) {
  const answer = await send('GET', `licenses?${query}`);
  const { licenses } = await dataOf<{ licenses: ListedLicenseObject[] }>(answer);
  return { total: Number(answer.headers['x-total-count']), licenses, link: answer.headers['link'] };
}

async function detailOf({ send }: TestApp, key: string) {
  const answer = await send('GET', `licenses/${encodeURIComponent(key)}`);
  expect([key, answer.statusCode]).toEqual([key, 200]);
  return licenseDetail.parse(await dataOf(answer));
}

/** An agent with four stored licenses: fresh, expired, disabled and gone. */
async function openAgent(): Promise<TestApp> {
  const opened = await openApp({ role: 'agent', products: productsOf('press'), now: () => now });
  const { snapshots } = opened.agentTables();
  const put = (licenseKey: string, changes: Parameters<typeof buildSnapshot>[0], buyerEmail: string): void =>
    snapshots.put({
      ...buildSnapshot({
        confirmedAt: now - 1_000,
        local: { uses: 3, enabled: true, pending: 0 },
        ...changes,
      }),
      license: buildLicense({ licenseKey, buyerEmail, uses: 3 }),
    });
  put('FRESH-1', { local: { uses: 4, enabled: true, pending: 1 } }, 'ann@example.com');
  put('OLD-1', { confirmedAt: now - 20 * day }, 'bob@example.com');
  put('OFF-1', { local: { uses: 3, enabled: false, pending: 0 } }, 'ann@example.com');
  put('GONE-1', { gone: true, missingSince: now - 2 * day }, 'Cid@example.com');
  snapshots.addAlias('fresh-other', 'FRESH-1', { at: 1, max: 3 });
  return opened;
}

test('An agent lists the licenses that it has stored, with their state and freshness.', async () => {
  await using opened = await openAgent();
  const all = await listed(opened, 'limit=3');
  expect([all.total, all.link]).toEqual([4, expect.stringContaining('rel="next"')]);
  expect(all.licenses.map(({ license_key: key, state, freshness }) => [key, state, freshness])).toEqual([
    ['FRESH-1', 'enabled', 'fresh'],
    ['GONE-1', 'gone', 'fresh'],
    ['OFF-1', 'disabled', 'fresh'],
  ]);
  expect(all.licenses.map(({ missing_since: since }) => since)).toEqual([
    null,
    formatDatetime(now - 2 * day),
    null,
  ]);
  expect(all.licenses[0]).toMatchObject({ uses: 4, pending: 1, confirmed_at: '2026-05-31T23:59:59+00:00' });
  const next = /<([^>]*)>/.exec(String(all.link))?.[1] ?? '';
  const rest = await opened.send('GET', next);
  expect((await dataOf<{ licenses: object[] }>(rest)).licenses).toMatchObject([
    { license_key: 'OLD-1', state: 'expired', freshness: 'expired', purchase_id: null },
  ]);
});

test.each([
  ['search=fresh', 'FRESH-1'],
  ['search=ANN', 'FRESH-1 OFF-1'],
  ['search=NN%40example', 'FRESH-1 OFF-1'],
  ['search=cid', 'GONE-1'],
  ['search=F-1', 'OFF-1'],
  ['search=%20OLD-1%20', 'OLD-1'],
  ['search=OLD%E2%80%931', 'OLD-1'],
  ['search=fresh-other', 'FRESH-1'],
  ['search=nothing', ''],
  ['license_key=fresh-other', 'FRESH-1'],
  ['buyer_email=CID%40example.com', 'GONE-1'],
  ['enabled=false', 'OFF-1'],
  ['search=example&enabled=false', 'OFF-1'],
  ['product_key=press&search=d-1', 'OLD-1'],
  ['product_key=other', ''],
  ['account_id=other', ''],
  ['account_id=default&limit=1', 'FRESH-1'],
])('An agent finds stored licenses by %s.', async (query, keys) => {
  await using opened = await openAgent();
  const { licenses, total, link } = await listed(opened, query);
  expect(licenses.map(({ license_key: key }) => key).join(' ')).toBe(keys);
  expect(total).toBe(link === undefined ? licenses.length : 4);
});

test('A search at an agent that finds thousands of buyers lists them in the order of keys.', async () => {
  await using opened = await openAgent();
  const { snapshots } = opened.agentTables();
  for (let number = 0; number < 2_100; number += 1) {
    const licenseKey = `K-${String((number * 11) % 2_100).padStart(4, '0')}`;
    snapshots.put({
      ...buildSnapshot(),
      license: buildLicense({ licenseKey, buyerEmail: 'many@example.com' }),
    });
  }
  const { licenses, total } = await listed(opened, 'search=MANY&offset=10&limit=2');
  expect(licenses.map(({ license_key: key }) => key)).toEqual(['K-0010', 'K-0011']);
  expect(total).toBeNaN();
});

test('The detail of a stored license has its freshness and its unfinished operations.', async () => {
  await using opened = await openAgent();
  const { operations } = opened.agentTables();
  operations.add(buildOperation({ id: 'op', kind: 'usage', subject: 'FRESH-1' }));
  operations.add(buildOperation({ id: 'other', kind: 'usage', subject: 'OLD-1' }));
  const detail = await detailOf(opened, 'fresh-other');
  expect(detail).toMatchObject({
    license: { license_key: 'FRESH-1', uses: 4 },
    state: 'enabled',
    product: { product_key: 'press', seats: 3 },
    purchase: null,
    freshness: {
      state: 'fresh',
      confirmed_at: '2026-05-31T23:59:59+00:00',
      grace_until: '2026-06-14T23:59:59+00:00',
      confirmed: { uses: 3, enabled: true },
    },
    operations: [{ id: 'op', explanation: { meaning: expect.any(String) as string } }],
    operations_total: 1,
  });
  expect((await detailOf(opened, 'OLD-1')).state).toBe('expired');
  expect((await detailOf(opened, 'GONE-1')).state).toBe('gone');
  const unknown = await opened.send('GET', 'licenses/NEVER');
  expect([unknown.statusCode, codeOf(unknown)]).toEqual([404, 'license_not_found']);
});

test('The detail of a sold license has its purchase and its product, and says if it was refunded.', async () => {
  await using opened = await openApp();
  await opened.write(async ({ products, licenses, purchases }) => {
    await products.add(product, 'secret');
    await licenses.add(buildLicense({ licenseKey: 'SOLD-1', enabled: false }));
    await licenses.add(buildLicense({ licenseKey: 'GIVEN-1' }));
    await purchases.add({ purchaseId: 'p', licenseKey: 'SOLD-1', createdAt: now - day, refundedAt: now });
  });
  expect(await detailOf(opened, 'SOLD–1')).toMatchObject({
    license: { license_key: 'SOLD-1' },
    state: 'refunded',
    product: { product_key: product.productKey, name: product.name, seats: product.leaseTerms.seats },
    purchase: {
      purchase_id: 'p',
      date: '2026-05-31T00:00:00+00:00',
      refunded_at: '2026-06-01T00:00:00+00:00',
    },
    freshness: null,
    operations: [],
    operations_total: 0,
  });
  expect(await detailOf(opened, 'GIVEN-1')).toMatchObject({ state: 'enabled', purchase: null });
  const { licenses } = await listed(opened, 'search=sold');
  expect(licenses).toMatchObject([
    { license_key: 'SOLD-1', state: 'refunded', freshness: null, pending: null },
  ]);
  expect((await listed(opened, 'search=SOLD%E2%80%931')).total).toBe(1);
});

test('A holder has no list of licenses and no detail.', async () => {
  await using opened = await openApp({ role: 'holder' });
  for (const path of ['licenses', 'licenses/KEY']) {
    const answer = await opened.send('GET', path);
    expect([answer.statusCode, codeOf(answer)]).toEqual([501, 'not_offered_by_holder']);
  }
});
