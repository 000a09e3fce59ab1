import { expect, test } from 'vitest';
import { couponTerms } from '../../src/domain/checkout/coupon.ts';
import { isUnusedAuthority, roleOf } from '../../src/service/lifecycle/role.ts';
import type { Transaction } from '../../src/service/tables.ts';
import { givenOperation } from '../support/given/operation-given.ts';
import { account, givenObservation, givenStore, product } from '../support/given/store-given.ts';
import { AgentStage, Stage, valueOf } from '../support/stage/service-stage.ts';

const collection = { collectionId: 'set', accountId: 'default', name: 'Set', productKeys: [] };
const asAuthority = { adminTokenDigest: 'd', place: 'here', apiKeyDigest: 'digest' };

test('a store remembers the role that it was started for, also while it is empty', async () => {
  await using agent = new AgentStage();
  expect(roleOf(agent.store)).toBeNull();
  await agent.start();
  expect(roleOf(agent.store)).toBe('agent');
  await using authority = new Stage();
  valueOf(await authority.writer.write('startAuthority', asAuthority));
  expect(roleOf(authority.store)).toBe('authority');
});

test('the role of a store that does not remember it is told by what it holds', async () => {
  await using authority = givenStore();
  const { accounts, products } = authority.writing.transaction;
  accounts.add(account, 'digest');
  expect(roleOf(authority.reading.reader)).toBe('authority');
  products.add(product, 'digest');
  expect(roleOf(authority.reading.reader)).toBe('authority');

  await using knowing = givenStore();
  knowing.writing.transaction.observations.put(givenObservation());
  expect(roleOf(knowing.reading.reader)).toBe('agent');

  await using listing = givenStore();
  const coupon = { id: 7, ...couponTerms({ couponType: 'multi', percentOff: 20, code: 'SPRING' }) };
  listing.writing.transaction.mirror.put({ coupon, confirmedAt: 1 });
  expect(roleOf(listing.reading.reader)).toBe('agent');

  await using waiting = givenStore();
  waiting.writing.transaction.operations.add(givenOperation());
  expect(roleOf(waiting.reading.reader)).toBe('agent');
});

test('an agent that was once started without its upstream is an agent, although it has an account', async () => {
  await using store = givenStore();
  store.writing.transaction.operations.add(givenOperation());
  store.writing.transaction.accounts.add(account, 'digest');
  expect(roleOf(store.reading.reader)).toBe('agent');
});

test('an authority is unused until a product, a collection, a coupon or a second account is in it', async () => {
  const made: ((transaction: Transaction) => unknown)[] = [
    ({ products }) => products.add(product, 'digest'),
    ({ collections }) => collections.add(collection),
    ({ coupons }) =>
      coupons.add('default', couponTerms({ couponType: 'multi', percentOff: 20, code: 'SPRING' })),
    ({ accounts }) => accounts.add({ ...account, accountId: 'second' }, 'another'),
  ];
  for (const make of made) {
    await using store = givenStore();
    const { transaction } = store.writing;
    transaction.accounts.add(account, 'digest');
    expect(await isUnusedAuthority(store.reading.reader)).toBe(true);
    make(transaction);
    expect(await isUnusedAuthority(store.reading.reader)).toBe(false);
  }
});
