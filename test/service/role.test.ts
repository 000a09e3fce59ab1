import { expect, test } from 'vitest';
import { couponTerms } from '../../src/domain/checkout/coupon.ts';
import { isUnusedAuthority, roleOf } from '../../src/service/lifecycle/start.ts';
import type { Transaction } from '../../src/service/tables.ts';
import { account, createTestStore, product } from '../support/builders/store-builders.ts';
import { AgentHarness, Harness, valueOf } from '../support/harness/service-harness.ts';

const collection = { collectionId: 'set', accountId: 'default', name: 'Set', productKeys: [] };
const asAuthority = { adminTokenDigest: 'd', place: 'here', apiKeyDigest: 'digest' };

test('a store remembers the role of its first start, even while it is empty', async () => {
  await using agent = new AgentHarness();
  expect(roleOf(agent.store)).toBeNull();
  await agent.start();
  expect(roleOf(agent.store)).toBe('agent');
  await using authority = new Harness();
  valueOf(await authority.writer.write('startAuthority', asAuthority));
  expect(roleOf(authority.store)).toBe('authority');
});

test('an authority is unused until it has a product, a collection, a coupon or a second account', async () => {
  const made: ((transaction: Transaction) => unknown)[] = [
    ({ products }) => products.add(product, 'digest'),
    ({ collections }) => collections.add(collection),
    ({ coupons }) =>
      coupons.add('default', couponTerms({ couponType: 'multi', percentOff: 20, code: 'SPRING' })),
    ({ accounts }) => accounts.add({ ...account, accountId: 'second' }, 'another'),
  ];
  for (const make of made) {
    await using store = createTestStore();
    const { transaction } = store.writing;
    transaction.accounts.add(account, 'digest');
    expect(await isUnusedAuthority(store.reading.reader)).toBe(true);
    make(transaction);
    expect(await isUnusedAuthority(store.reading.reader)).toBe(false);
  }
});
