import type { Collection } from '../../domain/collection.ts';
import { foreignProduct, notFound, unknownAccount } from '../../domain/problem/not-found.ts';
import {
  done,
  refuse,
  refuseParameters,
  type ParameterFault,
  type Result,
} from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import { newIdentifier } from '../access/secret.ts';
import type { AuthorityReader, AuthorityTransaction } from '../tables.ts';

export type NewCollection = {
  accountId: string;
  name: string;
  productKeys: readonly string[];
  /** Null: generate one. */
  collectionId: string | null;
};

export async function addCollection(
  transaction: AuthorityTransaction,
  command: NewCollection,
  context: Context,
): Promise<Result<Collection>> {
  const { accountId, name } = command;
  if ((await transaction.accounts.get(accountId)) === null) return refuseParameters([unknownAccount]);
  const productKeys = [...new Set(command.productKeys)];
  const faults = await memberFaults(transaction, accountId, productKeys);
  if (faults.length > 0) return refuseParameters(faults);
  const collectionId = command.collectionId ?? newIdentifier(context.random);
  if ((await transaction.collections.get(collectionId)) !== null) {
    return refuse('collection_id_taken', 'There already is a collection with this id.');
  }
  const collection = { collectionId, accountId, name, productKeys };
  await transaction.collections.add(collection);
  return done(collection);
}

export type CollectionChange = { collectionId: string; name: string; productKeys: readonly string[] };

/** Replaces the name and products of a collection; its coupons then apply to the new products. */
export async function updateCollection(
  transaction: AuthorityTransaction,
  { collectionId, name, productKeys }: CollectionChange,
): Promise<Result<Collection>> {
  const collection = await transaction.collections.get(collectionId);
  if (collection === null) return notFound('collection');
  const changed = { ...collection, name, productKeys: [...new Set(productKeys)] };
  const faults = await memberFaults(transaction, collection.accountId, changed.productKeys);
  if (faults.length > 0) return refuseParameters(faults);
  await transaction.collections.put(changed);
  return done(changed);
}

async function memberFaults(
  { products }: AuthorityReader,
  accountId: string,
  productKeys: readonly string[],
): Promise<ParameterFault[]> {
  for (const productKey of productKeys) {
    const product = await products.get(productKey);
    if (product?.accountId !== accountId) return [foreignProduct('product_keys')];
  }
  return [];
}
