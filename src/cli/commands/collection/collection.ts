import { collectionObject, type CollectionObject } from '../../../wire/collection.ts';
import type { View } from '../../client/request.ts';
import { type Cell, formatFields, whole } from '../../format.ts';

export const collectionsPath = '/admin/v1/collections';

export const collectionView: View<CollectionObject> = {
  schema: collectionObject,
  show: (collection) => formatFields(collectionFields(collection)),
};

export function collectionPath(id: string): string {
  return `${collectionsPath}/${encodeURIComponent(id)}`;
}

export function collectionFields(collection: CollectionObject): Record<string, Cell> {
  return {
    collection: whole(collection.collection_id),
    name: collection.name,
    products: collection.product_keys.join(', '),
    account: whole(collection.account_id),
  };
}
