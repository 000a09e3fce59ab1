import type { Collection } from '../../domain/collection.ts';
import { done, refuse, refuseParameters, type Result } from '../../domain/problem.ts';
import type { Context } from '../ports.ts';
import { newIdentifier } from '../access/secret.ts';
import type { Transaction } from '../tables.ts';

export type NewCollection = {
  accountId: string;
  name: string;
  productKeys: readonly string[];
  /** Null: one is made. */
  collectionId: string | null;
};

/** Adds a collection of an account's products. */
export function addCollection(
  transaction: Transaction,
  command: NewCollection,
  context: Context,
): Result<Collection> {
  const { accountId, name } = command;
  if (transaction.accounts.get(accountId) === null) {
    const detail = 'There is no such account.';
    return refuseParameters([{ parameter: 'account_id', code: 'account_not_found', detail }]);
  }
  const productKeys = [...new Set(command.productKeys)];
  if (productKeys.some((key) => transaction.products.get(key)?.accountId !== accountId)) {
    const detail = 'The account has no such product.';
    return refuseParameters([{ parameter: 'product_keys', code: 'product_not_found', detail }]);
  }
  const collectionId = command.collectionId ?? newIdentifier(context.random);
  if (transaction.collections.get(collectionId) !== null) {
    return refuse('collection_id_taken', 'There already is a collection with this id.');
  }
  const collection = { collectionId, accountId, name, productKeys };
  transaction.collections.add(collection);
  return done(collection);
}
