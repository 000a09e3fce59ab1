import { expect, test } from 'vitest';
import { sha256, systemRandom } from '../../../src/daemon/system/machine.ts';
import { runUseCase } from '../../../src/service/run.ts';
import { account, buildLicense, createTestStore, product } from '../../support/builders/store-builders.ts';

const count = 4_000;

/** Bytes of the pages that are in use. */
function bytesOf(database: ReturnType<typeof createTestStore>['writing']['database']): number {
  const { bytes } = database
    .prepare(
      `SELECT (page_count - freelist_count) * page_size AS bytes
       FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`,
    )
    .get() as { bytes: number };
  return bytes;
}

test('the stored answer to a change of an agent takes 130 bytes at most, with its indexes', async () => {
  await using store = createTestStore();
  const { transaction, database } = store.writing;
  if (transaction.accounts.get(account.accountId) === null) transaction.accounts.add(account, 'digest');
  transaction.products.add(product, 'digest of the secret');
  transaction.licenses.add(buildLicense());
  const { licenseKey } = buildLicense();
  const tenant = { accountId: account.accountId, productKey: product.productKey };
  const now = Date.now();
  const context = { now, monotonic: 0, recordsHistory: false, random: systemRandom, digest: sha256 };
  const before = bytesOf(database);
  database.exec('BEGIN');
  for (let number = 0; number < count; number += 1) {
    const id = systemRandom.uuid(now + number);
    // As the HTTP side makes it.
    const idempotency = {
      credential: '~AbCdEfGh',
      key: Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url'),
      fingerprint: 'AbCdEfGh',
      keyed: { id, createdAt: now, epoch: null, isRepeat: false, seenRevision: null },
    };
    const command = { tenant, licenseKey, trigger: 'usage' } as const;
    const writeOptions = { actor: 'product:press', requestId: null, idempotency };
    await runUseCase(transaction, { name: 'changeLicense', command, writeOptions }, context);
  }
  database.exec('COMMIT');
  expect(transaction.licenses.get(licenseKey)?.uses).toBe(buildLicense().uses + count);
  const perAnswer = (bytesOf(database) - before) / count;
  expect(perAnswer).toBeGreaterThan(20);
  expect(perAnswer).toBeLessThan(130);
});
