import { expect, test } from 'vitest';
import { account, buildLicense, createTestStore, product } from '../../../support/builders/store-builders.ts';

test('nothing of a former address is left in the index of the search', async () => {
  await using store = createTestStore();
  const { transaction, database } = store.writing;
  transaction.accounts.add(account, 'digest');
  transaction.products.add(product, 'secret');
  transaction.licenses.add(buildLicense({ buyerEmail: 'ann@example.com' }));
  transaction.licenses.indexForSearch(10);
  const indexed = (part: string): unknown[] =>
    database.prepare('SELECT rowid FROM license_search WHERE license_search MATCH ?').all(`"${part}"`);
  expect(indexed('ann')).toHaveLength(1);
  transaction.customers.setBuyer(['KEY-1'], '');
  transaction.licenses.indexForSearch(10);
  expect([indexed('ann'), indexed('KEY').length]).toEqual([[], 1]);
});
