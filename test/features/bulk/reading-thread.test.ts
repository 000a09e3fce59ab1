import { expect, test } from 'vitest';
import { ReadingThread } from '../../../src/daemon/threads/reading-thread.ts';
import { account, buildLicense, createTestStore, product } from '../../support/builders/store-builders.ts';

test('The reading thread reads an export.', async () => {
  await using store = createTestStore();
  const { transaction } = store.writing;
  transaction.accounts.add(account, 'digest');
  transaction.products.add(product, 'secret');
  transaction.licenses.add(buildLicense());
  await using thread = new ReadingThread(store.databasePath);
  const exported = await thread.longRead('exportPage', { noun: 'licenses', filter: {}, after: null });
  expect(exported).toEqual({ csv: expect.stringContaining('KEY-1,press,') as string, last: null });
});
