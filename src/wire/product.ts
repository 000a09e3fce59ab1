import { z } from 'zod';
import { formatDatetime } from '../domain/time.ts';
import type { Product } from '../domain/catalogue.ts';
import type { ProductWithSecret } from '../service/authority/catalogue.ts';
import { boolean, identifier, name, newIdentifier, secret, instant, parameters } from './parameters.ts';
import { pageShape } from './page.ts';

export const productObject = z
  .object({
    product_key: z.string(),
    account_id: z.string(),
    name: z.string(),
    recurring: z.boolean(),
    archived: z.boolean(),
    secret: z.string().optional(),
    old_secret_until: instant.optional(),
  })
  .meta({ id: 'Product' });

export type ProductObject = z.infer<typeof productObject>;

export const productList = z
  .object({
    products: z.array(productObject),
  })
  .meta({ id: 'ProductList' });

/** `GET /admin/v1/products`. */
export const productQuery = parameters({
  account_id: identifier.optional(),
  archived: boolean.optional(),
  ...pageShape('products'),
});

export const productParameters = parameters(
  {
    name,
    recurring: boolean.optional(),
    account_id: identifier.optional(),
    product_key: newIdentifier.optional(),
    secret: secret.optional(),
  },
  { id: 'NewProduct' },
);

/** `PUT /admin/v1/products/{product_key}`: a request without all members is refused. */
export const productChange = parameters(
  { name, recurring: boolean, archived: boolean },
  { unknown: 'refused', id: 'ProductChange' },
);

export function serializeProduct(product: Product): ProductObject {
  return {
    product_key: product.productKey,
    account_id: product.accountId,
    name: product.name,
    recurring: product.recurring,
    archived: product.archivedAt !== null,
  };
}

/** The product with its secret, shown on creation and roll only. */
export function serializeProductSecret({
  product,
  secret: itsSecret,
  oldUntil,
}: ProductWithSecret): ProductObject {
  const until = oldUntil === null ? {} : { old_secret_until: formatDatetime(oldUntil) };
  return { ...serializeProduct(product), secret: itsSecret, ...until };
}
