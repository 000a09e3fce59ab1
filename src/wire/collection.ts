import { z } from 'zod';
import { identifier, name, newIdentifier, texts, parameters } from './parameters.ts';
import { pageShape } from './page.ts';
import { serializerOf } from './server/shape.ts';

export const collectionObject = z
  .object({
    collection_id: z.string(),
    account_id: z.string(),
    name: z.string(),
    product_keys: z.array(z.string()).readonly(),
  })
  .meta({ id: 'Collection' });

export type CollectionObject = z.infer<typeof collectionObject>;

export const collectionList = z
  .object({ collections: z.array(collectionObject) })
  .meta({ id: 'CollectionList' });

/** `GET /admin/v1/collections`. */
export const collectionQuery = parameters({
  account_id: identifier.optional(),
  ...pageShape('collections'),
});

/** `PUT /admin/v1/collections/{collection_id}`: a request without all members is refused. */
export const collectionChange = parameters(
  { name, product_keys: texts },
  { unknown: 'refused', id: 'CollectionChange' },
);

export const collectionParameters = parameters(
  {
    name,
    product_keys: texts,
    collection_id: newIdentifier.optional(),
    account_id: identifier.optional(),
  },
  { id: 'NewCollection' },
);

export const serializeCollection = serializerOf(collectionObject);
