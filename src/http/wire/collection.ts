import { z } from 'zod';
import type { Collection } from '../../domain/collection.ts';
import { identifier, name, texts } from './kind.ts';
import { parameters, type ParameterSet } from './parameters.ts';

export type CollectionObject = { collection_id: string; name: string; product_keys: readonly string[] };

export const collectionObject: z.ZodType<CollectionObject> = z.object({
  collection_id: z.string(),
  name: z.string(),
  product_keys: z.array(z.string()),
});

export const collectionParameters: ParameterSet<{
  name: string;
  productKeys: readonly string[];
  collectionId?: string | undefined;
  accountId?: string | undefined;
}> = parameters({
  name,
  product_keys: texts,
  collection_id: identifier.optional(),
  account_id: identifier.optional(),
});

export function presentCollection(collection: Collection): CollectionObject {
  return {
    collection_id: collection.collectionId,
    name: collection.name,
    product_keys: collection.productKeys,
  };
}
