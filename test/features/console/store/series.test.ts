import { expect, test } from 'vitest';
import { openAuthorityStore } from '../../../support/app/authority-store.ts';
import { account, at, buildLicense, product } from '../../../support/builders/store-builders.ts';
import { buildActivation } from '../../leases/support/activation-builders.ts';

test('a step adds its counts, keeps its last values, and is pruned by its start', async () => {
  await using store = await openAuthorityStore();
  const { series } = store.reader;
  const row = { stepS: 60, at, verifies: 2, uses: 1, pending: 3, oldestAgeS: 9, upstream: 'down' } as const;
  await store.write(async (transaction) => {
    await transaction.series.add(row);
    await transaction.series.add({ ...row, verifies: 5, pending: 0, oldestAgeS: null, upstream: 'up' });
    await transaction.series.add({ ...row, stepS: 600, verifies: 0, pending: null, upstream: null });
    await transaction.series.add({ ...row, at: at + 60_000 });
    await transaction.series.add({ ...row, at: at + 120_000 });
  });
  const first = { ...row, verifies: 7, uses: 2, pending: 0, oldestAgeS: null, upstream: 'up' };
  expect(await series.get(60, at)).toEqual(first);
  expect(await series.get(60, at + 1)).toBeNull();
  expect(await series.list(60, at, at + 120_000)).toEqual([first, { ...row, at: at + 60_000 }]);
  expect(await series.list(600, at, at + 1)).toEqual([
    { ...row, stepS: 600, verifies: 0, pending: null, upstream: null },
  ]);
  await store.write(async (transaction) => await transaction.series.prune(60, at + 1, at + 119_999));
  expect(await series.list(60, at, at + 180_000)).toEqual([{ ...row, at: at + 60_000 }]);
  expect(await series.get(600, at)).not.toBeNull();
});

test('sales, refunds and new devices are counted by the steps in which they were', async () => {
  await using store = await openAuthorityStore();
  await store.write(async ({ accounts, products, licenses, purchases, activations }) => {
    await accounts.add(account, 'digest');
    await products.add(product, 'secret');
    await licenses.add(buildLicense());
    const sold = { licenseKey: 'KEY-1', createdAt: at + 61_000, refundedAt: null };
    await purchases.add({ ...sold, purchaseId: 'p', refundedAt: at + 130_000 });
    await purchases.add({ ...sold, purchaseId: 'q', createdAt: at + 119_999 });
    await activations.put(buildActivation({ createdAt: at + 5 }));
  });
  const { series } = store.reader;
  const within = [60_000, at, at + 180_000] as const;
  expect(await series.sales(...within)).toEqual([{ at: at + 60_000, count: 2 }]);
  expect(await series.refunds(...within)).toEqual([{ at: at + 120_000, count: 1 }]);
  expect(await series.activations(...within)).toEqual([{ at, count: 1 }]);
  expect(await series.sales(60_000, at + 120_000, at + 180_000)).toEqual([]);
});
