import { expect, test } from 'vitest';
import { couponTerms } from '../../src/domain/checkout/coupon.ts';
import { isUnusedAuthority, roleOf } from '../../src/service/lifecycle/start.ts';
import type { Transaction } from '../../src/service/tables.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';
import { account, buildSnapshot, createTestStore, product } from '../support/builders/store-builders.ts';
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

test('the role of a store without a stored role is derived from its content', async () => {
  await using authority = createTestStore();
  const { accounts, products } = authority.writing.transaction;
  accounts.add(account, 'digest');
  expect(roleOf(authority.reading.reader)).toBe('authority');
  products.add(product, 'digest');
  expect(roleOf(authority.reading.reader)).toBe('authority');

  await using knowing = createTestStore();
  knowing.writing.transaction.snapshots.put(buildSnapshot());
  expect(roleOf(knowing.reading.reader)).toBe('agent');

  await using listing = createTestStore();
  const coupon = { id: 7, ...couponTerms({ couponType: 'multi', percentOff: 20, code: 'SPRING' }) };
  listing.writing.transaction.mirror.put({ coupon, confirmedAt: 1 });
  expect(roleOf(listing.reading.reader)).toBe('agent');

  await using waiting = createTestStore();
  waiting.writing.transaction.operations.add(buildOperation());
  expect(roleOf(waiting.reading.reader)).toBe('agent');
});

test('an agent that was once started without its upstream is an agent, although it has an account', async () => {
  await using store = createTestStore();
  store.writing.transaction.operations.add(buildOperation());
  store.writing.transaction.accounts.add(account, 'digest');
  expect(roleOf(store.reading.reader)).toBe('agent');
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
