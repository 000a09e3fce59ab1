import { expect, test } from 'vitest';
import { openAuthorityStore } from '../../../support/app/authority-store.ts';
import { at } from '../../../support/builders/store-builders.ts';

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
