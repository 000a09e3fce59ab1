import { z } from 'zod';
import type { View } from '../../client/request.ts';
import { type Cell, formatFields, whole } from '../../format.ts';

export const collectionsPath = '/admin/v1/collections';

export const collection = z.object({
  collection_id: z.string(),
  account_id: z.string(),
  name: z.string(),
  product_keys: z.array(z.string()),
});

type Collection = z.infer<typeof collection>;

export const collectionView: View<Collection> = {
  schema: collection,
  show: (shown) => formatFields(collectionFields(shown)),
};

export function collectionPath(id: string): string {
  return `${collectionsPath}/${encodeURIComponent(id)}`;
}

export function collectionFields(shown: Collection): Record<string, Cell> {
  return {
    collection: whole(shown.collection_id),
    name: shown.name,
    products: shown.product_keys.join(', '),
    account: whole(shown.account_id),
  };
}
