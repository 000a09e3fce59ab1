import { DatabaseSync } from 'node:sqlite';
import * as fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { createTables } from '../../../src/store/sqlite/files/migrations.ts';
import { prepareTransaction } from '../../../src/store/sqlite/connection.ts';
import { account, buildLicense, buildSnapshot, product } from '../../support/builders/store-builders.ts';

const hourMs = 3_600_000;
const products = ['press', 'plug'];
const key = fc.integer({ min: 0, max: 6 }).map((number) => `KEY-${number}`);

function given(): { database: DatabaseSync } & ReturnType<typeof prepareTransaction> {
  const database = new DatabaseSync(':memory:');
  createTables(database);
  const transaction = prepareTransaction(database);
  transaction.accounts.add(account, 'digest');
  for (const productKey of products) transaction.products.add({ ...product, productKey }, productKey);
  return { database, ...transaction };
}

test('the licenses of each product and state are counted as they are, whatever was done to them', () => {
  const license = fc.record({
    licenseKey: key,
    productKey: fc.constantFrom(...products),
    enabled: fc.boolean(),
    uses: fc.integer({ min: 0, max: 2 }),
  });
  const act = fc.tuple(fc.constantFrom('add', 'setState'), license);
  fc.assert(
    fc.property(fc.array(act, { maxLength: 30 }), (acts) => {
      const { database, licenses } = given();
      for (const [name, row] of acts) {
        if (name === 'add') licenses.add(buildLicense(row));
        else licenses.setState(buildLicense(row), false);
      }
      const rows = database.prepare('SELECT product_key AS productKey, enabled FROM license').all();
      for (const productKey of [undefined, ...products, 'nothing']) {
        for (const enabled of [undefined, true, false]) {
          const counted = rows.filter(
            (row) =>
              (productKey === undefined || row['productKey'] === productKey) &&
              (enabled === undefined || (row['enabled'] === 1) === enabled),
          );
          const filter = { productKey, enabled };
          expect(licenses.count(filter)).toBe(counted.length);
          expect(licenses.list(filter, { limit: 100, offset: 0 })).toHaveLength(counted.length);
          const tenant = { accountId: 'default', productKey: null };
          expect(licenses.count({ ...filter, tenant })).toBe(counted.length);
          expect(licenses.count({ ...filter, tenant: { ...tenant, accountId: 'other' } })).toBe(0);
        }
      }
    }),
    { numRuns: 40 },
  );
});

test('the few licenses of one account are listed by its products, not sought among those of all others', () => {
  const { accounts, products: sold, licenses } = given();
  accounts.add({ ...account, accountId: 'small' }, 'small');
  sold.add({ ...product, productKey: 'small', accountId: 'small' }, 'small');
  for (let number = 0; number < 20_001; number += 1) {
    licenses.add(buildLicense({ licenseKey: `A${number}`, productKey: 'press' }));
  }
  const keys = ['Z3', 'Z1', 'Z2'];
  for (const licenseKey of keys) {
    licenses.add(buildLicense({ licenseKey, productKey: 'small', enabled: licenseKey !== 'Z2' }));
  }
  const prepared = vi.spyOn(DatabaseSync.prototype, 'prepare');
  const list = (accountId: string, limit: number, enabled?: boolean): string[] =>
    licenses
      .list({ enabled, tenant: { accountId, productKey: null } }, { limit, offset: 0 })
      .map(({ licenseKey }) => licenseKey);
  const lists = (): string[] =>
    prepared.mock.calls.map(([sql]) => sql).filter((sql) => sql.includes('ORDER BY license_key'));
  expect([list('small', 10), list('small', 2), list('small', 10, true)]).toEqual([
    ['Z1', 'Z2', 'Z3'],
    ['Z1', 'Z2'],
    ['Z1', 'Z3'],
  ]);
  expect(lists()).toEqual([expect.stringContaining('product_key IN (SELECT product_key FROM product')]);
  expect(list('default', 2)).toEqual(['A0', 'A1']);
  expect(lists()).toHaveLength(2);
  prepared.mockRestore();
});

test('all acts of people are counted as they are', () => {
  const { audit } = given();
  const act = { at: 1, actor: 'token:1', act: 'product.add', subject: 'press', detail: '' };
  for (const at of [1, 2, 3]) audit.add({ ...act, at });
  expect([audit.count({}), audit.count({ since: 2 }), audit.count({ actor: 'none' })]).toEqual([3, 2, 0]);
});

test('purchases are counted as they are, whatever was done to them', () => {
  const purchase = fc.record({
    purchaseId: fc.integer({ min: 0, max: 4 }).map((number) => `purchase-${number}`),
    licenseKey: key,
    createdAt: fc.integer({ min: 0, max: 3 }),
    refundedAt: fc.option(fc.constant(9)),
  });
  const span = fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined });
  fc.assert(
    fc.property(fc.array(purchase, { maxLength: 20 }), span, span, (rows, since, until) => {
      const { licenses, purchases } = given();
      for (const number of [0, 1, 2, 3, 4, 5, 6]) {
        licenses.add(buildLicense({ licenseKey: `KEY-${number}`, productKey: products[number % 2] ?? '' }));
      }
      for (const row of rows) {
        if (purchases.get(row.purchaseId) === null) purchases.add(row);
        else purchases.setRefunded(row);
      }
      for (const productKey of [undefined, ...products]) {
        for (const refunded of [undefined, true, false]) {
          for (const accountId of [undefined, 'default', 'other']) {
            const tenant = accountId === undefined ? {} : { tenant: { accountId, productKey: null } };
            const filter = { productKey, refunded, since, until, ...tenant };
            expect(purchases.count(filter)).toBe(purchases.list(filter, { limit: 100, offset: 0 }).length);
          }
        }
      }
    }),
    { numRuns: 40 },
  );
});

test.for([3, 2_001])('an export of %i purchases holds those of its product and account, in order', (sold) => {
  const { database, licenses, purchases } = given();
  database.exec('BEGIN');
  for (let number = 0; number < sold; number += 1) {
    const licenseKey = `KEY-${String(number).padStart(5, '0')}`;
    licenses.add(buildLicense({ licenseKey, productKey: number % 3 === 0 ? 'plug' : 'press' }));
    // Sorted otherwise than the license keys.
    const purchaseId = String((number * 7_919) % 10_007).padStart(5, '0');
    purchases.add({ purchaseId, licenseKey, createdAt: number, refundedAt: null });
  }
  database.exec('COMMIT');
  const ofAccount = (accountId: string) => ({ tenant: { accountId, productKey: null } });
  for (const filter of [
    {},
    { productKey: 'press' },
    ofAccount('default'),
    ofAccount('other'),
    ofAccount('none'),
  ]) {
    const keys: string[] = [];
    for (let next = licenses.after(filter, '', 700); next.length > 0;) {
      keys.push(...next.map(({ licenseKey }) => licenseKey));
      next = licenses.after(filter, keys.at(-1) ?? '', 700);
    }
    expect(keys).toEqual(licenses.list(filter, { limit: 10_000, offset: 0 }).map((each) => each.licenseKey));
    const ids: string[] = [];
    for (let next = purchases.after(filter, '', 700); next.length > 0;) {
      ids.push(...next.map(({ purchase }) => purchase.purchaseId));
      next = purchases.after(filter, ids.at(-1) ?? '', 700);
    }
    const listed = purchases.list(filter, { limit: 10_000, offset: 0 });
    expect(ids).toEqual(listed.map(({ purchase }) => purchase.purchaseId).toSorted());
  }
});

test.for([3, 2_001])('the latest of %i purchases of a product are listed first', (sold) => {
  const { database, licenses, purchases } = given();
  database.exec('BEGIN');
  for (let number = 0; number < sold; number += 1) {
    const licenseKey = `KEY-${number}`;
    licenses.add(buildLicense({ licenseKey }));
    purchases.add({ purchaseId: String(number), licenseKey, createdAt: number, refundedAt: null });
  }
  database.exec('COMMIT');
  for (const filter of [{}, { productKey: 'press' }, { since: 1 }, { productKey: 'press', since: 1 }]) {
    const listed = purchases.list(filter, { limit: 2, offset: 0 });
    expect(listed.map(({ purchase }) => purchase.createdAt)).toEqual([sold - 1, sold - 2]);
    expect(purchases.count(filter)).toBe('since' in filter ? sold - 1 : sold);
  }
  expect(purchases.list({ productKey: 'plug' }, { limit: 2, offset: 0 })).toEqual([]);
});

test('snapshots are counted by their age as they are, whatever was done to them', () => {
  const instant = fc.integer({ min: 0, max: 5 * hourMs });
  const put = fc
    .record({
      licenseKey: key,
      productKey: fc.constantFrom(...products),
      confirmedAt: instant,
      enabled: fc.boolean(),
      gone: fc.boolean(),
    })
    .map(({ licenseKey, enabled, ...rest }) => ({ name: 'put', licenseKey, enabled, ...rest }) as const);
  const change = fc.record({
    name: fc.constant('setLocal' as const),
    licenseKey: key,
    enabled: fc.boolean(),
  });
  const remove = fc.record({ name: fc.constant('remove' as const), licenseKey: key });
  const since = fc
    .tuple(instant, instant, instant)
    .map((instants) => instants.toSorted((one, other) => other - one) as [number, number, number])
    .map(([fresh, stale, grace]) => ({ fresh, stale, grace }));
  fc.assert(
    fc.property(fc.array(fc.oneof(put, change, remove), { maxLength: 30 }), since, (acts, ages) => {
      const { database, snapshots } = given();
      for (const act of acts) {
        const { licenseKey } = act;
        if (act.name === 'remove') snapshots.remove(licenseKey);
        else if (act.name === 'setLocal') {
          snapshots.setLocal(licenseKey, { uses: 0, enabled: act.enabled, pending: 0 });
        } else {
          const { productKey, enabled, confirmedAt, gone } = act;
          const local = { uses: 0, enabled, pending: 0 };
          const license = buildLicense({ licenseKey });
          snapshots.put(buildSnapshot({ license, local, productId: productKey, confirmedAt, gone }));
        }
      }
      const rows = database
        .prepare('SELECT local_enabled AS enabled, confirmed_at AS at FROM license_snapshot WHERE gone = 0')
        .all() as { enabled: number; at: number }[];
      const countOf = (from: number, until: number): number =>
        rows.filter(({ enabled, at }) => enabled === 1 && at >= from && at < until).length;
      expect(snapshots.counts(ages)).toEqual({
        fresh: countOf(ages.fresh, Infinity),
        stale: countOf(ages.stale, ages.fresh),
        grace: countOf(ages.grace, ages.stale),
        expired: countOf(0, ages.grace),
        disabled: rows.filter(({ enabled }) => enabled === 0).length,
      });
    }),
    { numRuns: 60 },
  );
});

test('thousands that were confirmed within the hour in which a class ends are divided as the hour is', () => {
  const { database, snapshots } = given();
  database.exec('BEGIN');
  for (let number = 0; number < 10_001; number += 1) {
    const license = buildLicense({ licenseKey: `KEY-${number}` });
    const local = { uses: 0, enabled: true, pending: 0 };
    snapshots.put(buildSnapshot({ license, local, confirmedAt: 2 * hourMs + number }));
  }
  database.exec('COMMIT');
  const quarter = 2.25 * hourMs;
  expect(snapshots.counts({ fresh: quarter, stale: 2 * hourMs, grace: hourMs })).toEqual({
    fresh: 7_501,
    stale: 2_500,
    grace: 0,
    expired: 0,
    disabled: 0,
  });
});

test('keys that the upstream does not find are counted until they are refused', () => {
  const { snapshots } = given();
  expect(snapshots.missing(10)).toEqual({ count: 0, since: null });
  const put = (licenseKey: string, missingSince: number | null, gone = false): void =>
    snapshots.put(buildSnapshot({ license: buildLicense({ licenseKey }), missingSince, gone }));
  put('FOUND', null);
  put('FIRST', 100);
  put('SECOND', 200);
  put('REFUSED', 50, true);
  expect(snapshots.missing(10)).toEqual({ count: 2, since: 100 });
  expect(snapshots.missing(1)).toEqual({ count: 1, since: 100 });
  put('FIRST', null);
  expect(snapshots.missing(10)).toEqual({ count: 1, since: 200 });
});

test('license keys to be fetched are counted as they are, whatever was done to them', () => {
  const act = fc.tuple(fc.constantFrom('add', 'found', 'missing', 'postpone', 'clear'), key);
  fc.assert(
    fc.property(fc.array(act, { maxLength: 30 }), (acts) => {
      const { database, preload } = given();
      for (const [name, licenseKey] of acts) {
        if (name === 'add') preload.add({ licenseKey, productId: null });
        else if (name === 'postpone') preload.postpone(licenseKey);
        else if (name === 'clear') preload.clear();
        else preload.finish(licenseKey, name === 'found');
      }
      const rows = database.prepare('SELECT is_found AS isFound FROM preload').all();
      const countOf = (isFound: number | null): number =>
        rows.filter((row) => row['isFound'] === isFound).length;
      expect(preload.progress()).toEqual({ done: countOf(1), failed: countOf(0), left: countOf(null) });
    }),
    { numRuns: 40 },
  );
});
