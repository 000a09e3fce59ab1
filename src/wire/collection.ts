import { z } from 'zod';
import type { Collection } from '../domain/collection.ts';
import type { Page } from '../domain/page.ts';
import { identifier, name, newIdentifier, texts } from './types.ts';
import { pageShape } from './page.ts';
import { parameters, type ParameterSet } from './parameters.ts';

export type CollectionObject = {
  collection_id: string;
  account_id: string;
  name: string;
  product_keys: readonly string[];
};

export const collectionObject: z.ZodType<CollectionObject> = z
  .object({
    collection_id: z.string(),
    account_id: z.string(),
    name: z.string(),
    product_keys: z.array(z.string()),
  })
  .meta({ id: 'Collection' });

export const collectionList: z.ZodType<{ collections: CollectionObject[] }> = z
  .object({
    collections: z.array(collectionObject),
  })
  .meta({ id: 'CollectionList' });

/** `GET /admin/v1/collections`. */
export const collectionQuery: ParameterSet<{ accountId?: string | undefined } & Page> = parameters({
  account_id: identifier.optional(),
  ...pageShape('collections'),
});

/** `PUT /admin/v1/collections/{collection_id}`: all of it, so that nothing is changed by being left out. */
export const collectionChange: ParameterSet<{ name: string; productKeys: readonly string[] }> = parameters(
  { name, product_keys: texts },
  { unknown: 'refused', id: 'CollectionChange' },
);

export const collectionParameters: ParameterSet<{
  name: string;
  productKeys: readonly string[];
  collectionId?: string | undefined;
  accountId?: string | undefined;
}> = parameters(
  {
    name,
    product_keys: texts,
    collection_id: newIdentifier.optional(),
    account_id: identifier.optional(),
  },
  { id: 'NewCollection' },
);

export function serializeCollection(collection: Collection): CollectionObject {
  return {
    collection_id: collection.collectionId,
    account_id: collection.accountId,
    name: collection.name,
    product_keys: collection.productKeys,
  };
}
