import { collectionObject, type CollectionObject } from '../../../wire/collection.ts';
import type { View } from '../../client/request.ts';
import { type Cell, formatFields, whole } from '../../format.ts';

export const collectionsPath = '/admin/v1/collections';

export const collectionView: View<CollectionObject> = {
  schema: collectionObject,
  show: (shown) => formatFields(collectionFields(shown)),
};

export function collectionPath(id: string): string {
  return `${collectionsPath}/${encodeURIComponent(id)}`;
}

export function collectionFields(shown: CollectionObject): Record<string, Cell> {
  return {
    collection: whole(shown.collection_id),
    name: shown.name,
    products: shown.product_keys.join(', '),
    account: whole(shown.account_id),
  };
}
