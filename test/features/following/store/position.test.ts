import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { createTables } from '../../../../src/store/sqlite/files/migrations.ts';
import { prepareTransaction } from '../../../../src/store/sqlite/connection.ts';
import type { Transaction } from '../../../../src/service/tables.ts';
import type { FollowedRead } from '../../../../src/features/following/service/tables.ts';
import { account, at, buildLicense, product } from '../../../support/builders/store-builders.ts';

const tenant = { accountId: account.accountId, productKey: product.productKey };
const follower = { agentId: 'a'.repeat(32), reach: 'reach', tenant };

/** An agent follows A and B. */
function openFollowed(): DatabaseSync {
  const database = new DatabaseSync(':memory:');
  createTables(database);
  const { accounts, products, licenses, followers } = prepareTransaction(database);
  if (accounts.get(account.accountId) === null) accounts.add(account, 'digest');
  products.add(product, 'digest of the secret');
  for (const licenseKey of ['A', 'B']) licenses.add(buildLicense({ licenseKey }));
  followers.add({ ...follower, ...tenant, followed: 0, createdAt: at, seenAt: at });
  followers.follow(followers.get(follower.agentId, follower.reach)?.number ?? 0, ['A', 'B']);
  return database;
}

function use({ licenses }: Transaction, licenseKey: string): void {
  void licenses.change({ tenant, licenseKey, trigger: 'usage', historyEntry: null });
}

function readAfter({ followers }: Transaction, position: string | null): FollowedRead {
  return followers.followed({ ...follower, position, keys: [] });
}

test('an agent sends its keys again to a store that was put back, also if as much has changed there as was lost', () => {
  using database = openFollowed();
  const backup = database.serialize();
  const lost = prepareTransaction(database);
  use(lost, 'A');
  const { position } = readAfter(lost, null);
  using older = new DatabaseSync(':memory:');
  older.deserialize(backup);
  const putBack = prepareTransaction(older);
  use(putBack, 'B');
  expect(putBack.followers.isPosition(position)).toBe(false);
});

test('an agent goes on where it was after a restart of the store', () => {
  using database = openFollowed();
  const before = prepareTransaction(database);
  use(before, 'A');
  const { position } = readAfter(before, null);
  const restarted = prepareTransaction(database);
  use(restarted, 'B');
  expect(restarted.followers.isPosition(position)).toBe(true);
  expect(readAfter(restarted, position).licenses.map(({ license }) => license.licenseKey)).toEqual(['B']);
});
