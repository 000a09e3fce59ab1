import type { Product } from '../../domain/product.ts';
import { notFound, unknownAccount } from '../../domain/problem/not-found.ts';
import { done, refuse, refuseParameters, type Result } from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import { keepOldCredential } from '../access/credential.ts';
import { newCredential, newIdentifier, newSecret } from '../access/secret.ts';
import type { AuthorityTransaction } from '../tables.ts';

/** The secret is shown only once. `oldUntil`: until when the replaced secret stays valid (epoch ms), if it does. */
export type ProductWithSecret = { product: Product; secret: string; oldUntil: number | null };

export type NewProduct = {
  name: string;
  recurring: boolean;
  accountId: string;
  /** Null: generate one. */
  productKey: string | null;
  /** Null: generate one. Otherwise callers of an existing store already use it. */
  secret: string | null;
};

export async function addProduct(
  transaction: AuthorityTransaction,
  command: NewProduct,
  context: Context,
): Promise<Result<ProductWithSecret>> {
  const { accountId, name, recurring } = command;
  if ((await transaction.accounts.get(accountId)) === null) return refuseParameters([unknownAccount]);
  const productKey = command.productKey ?? newIdentifier(context.random);
  if ((await transaction.products.get(productKey)) !== null) {
    return refuse('product_key_taken', 'There already is a product with this key.');
  }
  const secret = command.secret ?? newSecret('lk_prod', context.random);
  const digest = context.digest(secret);
  const holder =
    (await transaction.products.bySecretDigest(digest)) ??
    (await transaction.oldCredentials.byDigest('product_secret', digest));
  if (holder !== null) {
    const detail = 'The secret belongs to another product.';
    return refuseParameters([{ parameter: 'secret', code: 'taken', detail }]);
  }
  const product = { productKey, accountId, name, recurring, createdAt: context.now, archivedAt: null };
  await transaction.products.add(product, digest);
  return done({ product, secret, oldUntil: null });
}

/** Replaces a product's secret. The old secret ends at once or at `oldUntil`. */
export async function rollProductSecret(
  transaction: AuthorityTransaction,
  { productKey, oldUntil }: { productKey: string; oldUntil: number | null },
  context: Context,
): Promise<Result<ProductWithSecret>> {
  const product = await transaction.products.get(productKey);
  const oldDigest = await transaction.products.secretDigest(productKey);
  if (product === null || oldDigest === null) return notFound('product');
  const { secret, digest } = newCredential('lk_prod', context);
  await transaction.products.setSecretDigest(productKey, digest);
  await keepOldCredential(transaction, { kind: 'product_secret', id: productKey }, oldDigest, oldUntil);
  return done({ product, secret, oldUntil });
}

export type ProductChange = { productKey: string; name: string; recurring: boolean; archived: boolean };

/** Updates a product. An archived product is no longer sold; its keys keep working. */
export async function updateProduct(
  { products }: AuthorityTransaction,
  { productKey, name, recurring, archived }: ProductChange,
  { now }: Context,
): Promise<Result<Product>> {
  const product = await products.get(productKey);
  if (product === null) return notFound('product');
  const archivedAt = archived ? (product.archivedAt ?? now) : null;
  const changed = { ...product, name, recurring, archivedAt };
  await products.put(changed);
  return done(changed);
}
