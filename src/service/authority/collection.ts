import type { Collection } from '../../domain/collection.ts';
import { done, refuse, refuseParameters, type Result } from '../../domain/problem.ts';
import type { Context } from '../ports.ts';
import { newIdentifier } from '../access/secret.ts';
import type { AuthorityTransaction } from '../tables.ts';

export type NewCollection = {
  accountId: string;
  name: string;
  productKeys: readonly string[];
  /** Null: one is made. */
  collectionId: string | null;
};

/** Adds a collection of an account's products. */
export async function addCollection(
  transaction: AuthorityTransaction,
  command: NewCollection,
  context: Context,
): Promise<Result<Collection>> {
  const { accountId, name } = command;
  if ((await transaction.accounts.get(accountId)) === null) {
    const detail = 'There is no such account.';
    return refuseParameters([{ parameter: 'account_id', code: 'account_not_found', detail }]);
  }
  const productKeys = [...new Set(command.productKeys)];
  for (const productKey of productKeys) {
    const product = await transaction.products.get(productKey);
    if (product?.accountId === accountId) continue;
    const detail = 'The account has no such product.';
    return refuseParameters([{ parameter: 'product_keys', code: 'product_not_found', detail }]);
  }
  const collectionId = command.collectionId ?? newIdentifier(context.random);
  if ((await transaction.collections.get(collectionId)) !== null) {
    return refuse('collection_id_taken', 'There already is a collection with this id.');
  }
  const collection = { collectionId, accountId, name, productKeys };
  await transaction.collections.add(collection);
  return done(collection);
}
