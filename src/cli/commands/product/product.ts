import { z } from 'zod';
import { request, requestAndShow, type View } from '../../client/request.ts';
import type { GlobalOptions } from '../../command.ts';
import { type Cell, formatFields, instant, whole } from '../../format.ts';
import type { Output } from '../../output.ts';

export const productsPath = '/admin/v1/products';

export const product = z.object({
  product_key: z.string(),
  account_id: z.string(),
  name: z.string(),
  recurring: z.boolean(),
  archived: z.boolean(),
  // Only when it was just created.
  secret: z.string().optional(),
  old_secret_until: z.string().optional(),
});

type Product = z.infer<typeof product>;

export const productView: View<Product> = {
  schema: product,
  show: (shown) => formatFields(productFields(shown)),
};

/** Shows a product and its new secret. */
export const newSecretView: View<Product> = {
  schema: product,
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
  changes: Partial<Pick<Product, 'name' | 'recurring' | 'archived'>>,
): Promise<number> {
  const path = productPath(options.product);
  const found = await request(options, { path }, product);
  if (!found.ok) return found.report(output);
  const { name, recurring, archived } = found.data;
  const json = { name, recurring, archived, ...changes };
  return await requestAndShow(options, output, { method: 'PUT', path, json }, productView);
}

export function productPath(key: string): string {
  return `${productsPath}/${encodeURIComponent(key)}`;
}

export function productFields(shown: Product): Record<string, Cell> {
  return {
    product: whole(shown.product_key),
    name: shown.name,
    price: shown.recurring ? 'recurring' : 'once',
    state: shown.archived ? 'archived' : 'on sale',
    account: whole(shown.account_id),
  };
}
