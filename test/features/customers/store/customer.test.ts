import { expect, test } from 'vitest';
import { openAuthorityStore } from '../../../support/app/authority-store.ts';
import type { AuthorityStore } from '../../../support/app/engine.ts';
import { account, at, buildLicense, page, product } from '../../../support/builders/store-builders.ts';

async function openShop(...emails: readonly string[]): Promise<AuthorityStore> {
  const store = await openAuthorityStore();
  await store.write(async ({ accounts, products, licenses }) => {
    await accounts.add(account, 'digest');
    await accounts.add({ ...account, accountId: 'other' }, 'digest-2');
    await products.add(product, 'secret-1');
    await products.add({ ...product, productKey: 'theirs', accountId: 'other' }, 'secret-2');
    for (const [index, buyerEmail] of emails.entries())
      await licenses.add(buildLicense({ licenseKey: `KEY-${index}`, buyerEmail }));
  });
  return store;
}

async function found({ reader }: AuthorityStore, text: string): Promise<string[]> {
  const filter = { search: { keys: 'anywhere', text } } as const;
  return (await reader.licenses.list(filter, page)).map(({ licenseKey }) => licenseKey);
}

test('a search finds licenses by the new address of the buyer and not by the old one, indexed or not', async () => {
  await using store = await openShop('ann@example.com', 'ben@example.com', 'zed@example.com');
  store.index?.();
  for (const [from, to] of [
    ['ann@', 'ida@'],
    ['ida@', 'una@'],
  ] as const) {
    await store.write(({ customers }) => customers.setBuyer(['KEY-0', 'KEY-2'], `${to}example.com`));
    for (const index of [() => undefined, store.index]) {
      index?.();
      expect(await found(store, to)).toEqual(['KEY-0', 'KEY-2']);
      expect(await found(store, from)).toEqual([]);
      expect(await found(store, 'example')).toEqual(['KEY-0', 'KEY-1', 'KEY-2']);
    }
  }
  await store.write(({ licenses }) =>
    licenses.add(buildLicense({ licenseKey: 'LATE', buyerEmail: 'una@x.de' })),
  );
  store.index?.();
  expect(await found(store, 'una@')).toEqual(['KEY-0', 'KEY-2', 'LATE']);
});

test('the licenses of a person are those with the address in any letter case, of one account or of all', async () => {
  await using store = await openShop('Ann@Example.com', 'anna@example.com');
  await store.write(async ({ licenses }) => {
    const theirs = { licenseKey: 'THEIRS', productKey: 'theirs', buyerEmail: 'ann@example.com' };
    await licenses.add(buildLicense(theirs));
  });
  await store.write(async ({ customers }) => {
    const mine = { licenseKey: 'KEY-0', buyerEmail: 'Ann@Example.com' };
    expect(await customers.licensesOf('ann@example.com', 'default')).toEqual([mine]);
    expect(await customers.licensesOf('ann@example.com', null)).toEqual([
      mine,
      { licenseKey: 'THEIRS', buyerEmail: 'ann@example.com' },
    ]);
  });
});

test('the stored responses are read page by page, each once', async () => {
  await using store = await openShop();
  const response = { fingerprint: 'f', value: { uses: 1 }, until: at };
  const keys = [
    ['a', '1'],
    ['a', '2'],
    ['b', '0'],
    ['b', '1'],
  ] as const;
  await store.write(async ({ customers, idempotency }) => {
    for (const [credential, key] of keys.toReversed())
      await idempotency.put(credential, key, { ...response, unchanged: false });
    const read = async (...after: readonly [string, string]): Promise<unknown> =>
      await customers.responsesAfter(...after, 2);
    expect(await read('', '')).toEqual(
      keys.slice(0, 2).map(([credential, key]) => ({ ...response, credential, key })),
    );
    expect(await read('a', '2')).toMatchObject([{ key: '0' }, { key: '1' }]);
    expect(await read('b', '1')).toEqual([]);
  });
});

test('a key that was replaced stays disabled, its history moves, and each change is a revision', async () => {
  await using store = await openShop('ann@example.com');
  const tenant = { accountId: 'default', productKey: null };
  const historyEntry = { at, credential: 'c' };
  const use = { tenant, licenseKey: 'KEY-0', trigger: 'usage', historyEntry } as const;
  await store.write(async ({ licenses, customers }) => {
    await licenses.change(use);
    await licenses.change(use);
    await licenses.add(buildLicense({ licenseKey: 'NEW', uses: 2 }));
    await customers.replaceKey('KEY-0', 'NEW');
    await licenses.change({ ...use, licenseKey: 'NEW' });
    await licenses.change({ ...use, trigger: 'enable' });
  });
  const { licenses, history } = store.reader;
  expect(await licenses.get('KEY-0')).toMatchObject({
    enabled: false,
    replacedBy: 'NEW',
    uses: 2,
    revision: 3,
  });
  expect(await licenses.get('NEW')).toMatchObject({ enabled: true, uses: 3 });
  expect((await history.list('NEW', page)).map(({ number }) => number)).toEqual([3, 2, 1]);
  expect(await history.count('KEY-0')).toBe(0);
  await store.write(async (transaction) => {
    expect(await transaction.licenses.isRevokedSince('KEY-0', 2)).toBe(true);
    await transaction.customers.setBuyer(['NEW'], '');
  });
  expect(await licenses.get('NEW')).toMatchObject({ buyerEmail: '', revision: 2 });
});
