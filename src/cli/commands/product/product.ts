import { request, requestAndShow, type View } from '../../client/request.ts';
import type { GlobalOptions } from '../../command.ts';
import { type Cell, formatFields, instant, whole } from '../../format.ts';
import type { Output } from '../../output.ts';
import { type ProductObject, productObject } from '../../../wire/product.ts';

export const productsPath = '/admin/v1/products';

export const productView: View<ProductObject> = {
  schema: productObject,
  show: (product) => formatFields(productFields(product)),
};

export const newSecretView: View<ProductObject> = {
  schema: productObject,
  show: (created) => [
    formatFields({
      ...productFields(created),
      secret: created.secret,
      'old one until': instant(created.old_secret_until),
    }),
    'The secret is shown only this once.',
  ],
};

/** Reads a product, and sends it with the changes. */
export async function changeProduct(
  options: GlobalOptions & { readonly product: string },
  output: Output,
  changes: Partial<Pick<ProductObject, 'name' | 'recurring' | 'archived'>>,
): Promise<number> {
  const path = productPath(options.product);
  const { name, recurring, archived } = (await request(options, { path }, productObject)).data;
  const json = { name, recurring, archived, ...changes };
  return await requestAndShow(options, output, { method: 'PUT', path, json }, productView);
}

export function productPath(key: string): string {
  return `${productsPath}/${encodeURIComponent(key)}`;
}

export function productFields(product: ProductObject): Record<string, Cell> {
  return {
    product: whole(product.product_key),
    name: product.name,
    price: product.recurring ? 'recurring' : 'once',
    state: product.archived ? 'archived' : 'on sale',
    account: whole(product.account_id),
  };
}
