import { z } from 'zod';
import type { Product } from '../../domain/product.ts';
import type { ProductWithSecret } from '../../service/authority/product.ts';
import type { Page } from '../../domain/page.ts';
import { boolean, identifier, name, secret } from './kind.ts';
import { pageShape } from './page.ts';
import { parameters, type ParameterSet } from './parameters.ts';

export type ProductObject = {
  product_key: string;
  name: string;
  recurring: boolean;
  secret?: string | undefined;
};

export const productObject: z.ZodType<ProductObject> = z.object({
  product_key: z.string(),
  name: z.string(),
  recurring: z.boolean(),
  secret: z.string().optional(),
});

export const productList: z.ZodType<{ products: ProductObject[] }> = z.object({
  products: z.array(productObject),
});

/** `GET /admin/v1/products`. */
export const productQuery: ParameterSet<{ accountId?: string | undefined } & Page> = parameters({
  account_id: identifier.optional(),
  ...pageShape,
});

export const productParameters: ParameterSet<{
  name: string;
  recurring?: boolean | undefined;
  accountId?: string | undefined;
  productKey?: string | undefined;
  secret?: string | undefined;
}> = parameters({
  name,
  recurring: boolean.optional(),
  account_id: identifier.optional(),
  product_key: identifier.optional(),
  secret: secret.optional(),
});

export function presentProduct({ productKey, name: itsName, recurring }: Product): ProductObject {
  return { product_key: productKey, name: itsName, recurring };
}

/** The product with its secret, shown on creation and roll only. */
export function presentProductSecret({ product, secret: itsSecret }: ProductWithSecret): ProductObject {
  return { ...presentProduct(product), secret: itsSecret };
}
