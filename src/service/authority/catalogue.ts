import {
  type Account,
  type Product,
  type Collection,
  defaultLeaseTerms,
  defaultProductTerms,
  type LeaseTerms,
  type ProductTerms,
} from '../../domain/catalogue.ts';
import {
  notFound,
  done,
  failWithFaults,
  type Result,
  unknownAccount,
  failWith,
  foreignProduct,
  type ParameterFault,
} from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import { storeOldCredential, newCredential, newSecret, newIdentifier } from '../access/credential.ts';
import { setNextGraces } from './grace.ts';
import type { AuthorityTransaction, AuthorityReader } from '../tables.ts';

/** The API key is shown only once. `oldUntil`: until when the replaced key stays valid (epoch ms), if it does. */
export type AccountWithKey = { account: Account; apiKey: string; oldUntil: number | null };

type NewAccount = {
  name: string;
  /** Null: generate one. Otherwise callers of an existing store already use it. */
  apiKey: string | null;
};

export async function addAccount(
  { accounts, oldCredentials }: AuthorityTransaction,
  command: NewAccount,
  context: Context,
): Promise<Result<AccountWithKey>> {
  const apiKey = command.apiKey ?? newSecret('lk_api', context.random);
  const digest = context.digest(apiKey);
  const holder = (await accounts.byKeyDigest(digest)) ?? (await oldCredentials.byDigest('api_key', digest));
  if (holder !== null) {
    const detail = 'The API key belongs to another account.';
    return failWithFaults([{ parameter: 'api_key', code: 'taken', detail }]);
  }
  const account = { accountId: context.random.uuid(context.now), name: command.name, createdAt: context.now };
  await accounts.add(account, digest);
  return done({ account, apiKey, oldUntil: null });
}

/** Replaces an account's API key. The old key ends at once (specification 5, rule 2) or at `oldUntil`. */
export async function rotateApiKey(
  transaction: AuthorityTransaction,
  { accountId, oldUntil }: { accountId: string; oldUntil: number | null },
  context: Context,
): Promise<Result<AccountWithKey>> {
  const { accounts } = transaction;
  const account = await accounts.get(accountId);
  const oldDigest = await accounts.keyDigest(accountId);
  if (account === null || oldDigest === null) return notFound('account');
  const { secret: apiKey, digest } = newCredential('lk_api', context);
  await accounts.setKeyDigest(accountId, digest);
  await storeOldCredential(transaction, { kind: 'api_key', id: accountId }, oldDigest, oldUntil);
  return done({ account, apiKey, oldUntil });
}

/** The secret is shown only once. `oldUntil`: until when the replaced secret stays valid (epoch ms), if it does. */
export type ProductWithSecret = { product: Product; secret: string; oldUntil: number | null };

type NewProduct = {
  name: string;
  recurring: boolean;
  accountId: string;
  /** Null: generate one. */
  productKey: string | null;
  /** Null: generate one. Otherwise callers of an existing store already use it. */
  secret: string | null;
  /** Terms that are missing are the default. */
  leaseTerms?: Partial<LeaseTerms>;
  licenseTerms?: Partial<ProductTerms>;
};

export async function addProduct(
  transaction: AuthorityTransaction,
  command: NewProduct,
  context: Context,
): Promise<Result<ProductWithSecret>> {
  const { accountId, name, recurring } = command;
  if ((await transaction.accounts.get(accountId)) === null) return failWithFaults([unknownAccount]);
  const terms = changedLeaseTerms(defaultLeaseTerms, command.leaseTerms);
  if (!terms.ok) return terms;
  const productKey = command.productKey ?? newIdentifier(context.random);
  if ((await transaction.products.get(productKey)) !== null) {
    return failWith('product_key_taken', 'There already is a product with this key.');
  }
  const secret = command.secret ?? newSecret('lk_prod', context.random);
  const digest = context.digest(secret);
  const holder =
    (await transaction.products.bySecretDigest(digest)) ??
    (await transaction.oldCredentials.byDigest('product_secret', digest));
  if (holder !== null) {
    const detail = 'The secret belongs to another product.';
    return failWithFaults([{ parameter: 'secret', code: 'taken', detail }]);
  }
  const product = {
    productKey,
    accountId,
    name,
    recurring,
    createdAt: context.now,
    archivedAt: null,
    leaseTerms: terms.value,
    licenseTerms: { ...defaultProductTerms, ...command.licenseTerms },
  };
  await transaction.products.add(product, digest);
  return done({ product, secret, oldUntil: null });
}

/** Replaces a product's secret. The old secret ends at once or at `oldUntil`. */
export async function rotateProductSecret(
  transaction: AuthorityTransaction,
  { productKey, oldUntil }: { productKey: string; oldUntil: number | null },
  context: Context,
): Promise<Result<ProductWithSecret>> {
  const product = await transaction.products.get(productKey);
  const oldDigest = await transaction.products.secretDigest(productKey);
  if (product === null || oldDigest === null) return notFound('product');
  const { secret, digest } = newCredential('lk_prod', context);
  await transaction.products.setSecretDigest(productKey, digest);
  await storeOldCredential(transaction, { kind: 'product_secret', id: productKey }, oldDigest, oldUntil);
  return done({ product, secret, oldUntil });
}

/** The terms with the changes; a fault if the result refreshes a lease only after it has expired. */
export function changedLeaseTerms(terms: LeaseTerms, changes: Partial<LeaseTerms> = {}): Result<LeaseTerms> {
  const changed = { ...terms, ...changes };
  if (changed.refreshMs < changed.termMs) return done(changed);
  const parameter = changes.refreshMs === undefined ? 'lease_term_s' : 'lease_refresh_s';
  const detail = 'lease_refresh_s must be less than lease_term_s.';
  return failWithFaults([{ parameter, code: 'out_of_range', detail }]);
}

type ProductChange = {
  productKey: string;
  name: string;
  recurring: boolean;
  archived: boolean;
  /** Terms that are missing stay as they are. */
  leaseTerms?: Partial<LeaseTerms>;
  licenseTerms?: Partial<ProductTerms>;
};

/** How many licenses get another grace in the commit of their product: all of a small shop. */
const firstGraces = 500;

/**
 * Updates a product. An archived product is no longer sold; its keys keep working. Another grace counts for all its licenses
 * (grace.ts), the other terms for new ones.
 */
export async function updateProduct(
  { products, licenses }: AuthorityTransaction,
  { productKey, name, recurring, archived, leaseTerms, licenseTerms }: ProductChange,
  { now }: Context,
): Promise<Result<Product>> {
  const product = await products.get(productKey);
  if (product === null) return notFound('product');
  const terms = changedLeaseTerms(product.leaseTerms, leaseTerms);
  if (!terms.ok) return terms;
  const archivedAt = archived ? (product.archivedAt ?? now) : null;
  const ofLicenses = { ...product.licenseTerms, ...licenseTerms };
  const changed = {
    ...product,
    name,
    recurring,
    archivedAt,
    leaseTerms: terms.value,
    licenseTerms: ofLicenses,
  };
  await products.put(changed);
  const { expiryGraceMs: graceMs } = ofLicenses;
  if (graceMs !== product.licenseTerms.expiryGraceMs)
    await setNextGraces({ products, licenses }, { productKey, graceMs, gracedTo: '' }, firstGraces);
  return done(changed);
}

type NewCollection = {
  accountId: string;
  name: string;
  productKeys: readonly string[];
  /** Null: generate one. */
  collectionId: string | null;
};

export async function addCollection(
  transaction: AuthorityTransaction,
  command: NewCollection,
  context: Context,
): Promise<Result<Collection>> {
  const { accountId, name } = command;
  if ((await transaction.accounts.get(accountId)) === null) return failWithFaults([unknownAccount]);
  const productKeys = [...new Set(command.productKeys)];
  const faults = await memberFaults(transaction, accountId, productKeys);
  if (faults.length > 0) return failWithFaults(faults);
  const collectionId = command.collectionId ?? newIdentifier(context.random);
  if ((await transaction.collections.get(collectionId)) !== null) {
    return failWith('collection_id_taken', 'There already is a collection with this id.');
  }
  const collection = { collectionId, accountId, name, productKeys };
  await transaction.collections.add(collection);
  return done(collection);
}

type CollectionChange = { collectionId: string; name: string; productKeys: readonly string[] };

/** Replaces the name and products of a collection; its coupons then apply to the new products. */
export async function updateCollection(
  transaction: AuthorityTransaction,
  { collectionId, name, productKeys }: CollectionChange,
): Promise<Result<Collection>> {
  const collection = await transaction.collections.get(collectionId);
  if (collection === null) return notFound('collection');
  const changed = { ...collection, name, productKeys: [...new Set(productKeys)] };
  const faults = await memberFaults(transaction, collection.accountId, changed.productKeys);
  if (faults.length > 0) return failWithFaults(faults);
  await transaction.collections.put(changed);
  return done(changed);
}

async function memberFaults(
  { products }: AuthorityReader,
  accountId: string,
  productKeys: readonly string[],
): Promise<ParameterFault[]> {
  for (const productKey of productKeys) {
    const product = await products.get(productKey);
    if (product?.accountId !== accountId) return [foreignProduct('product_keys')];
  }
  return [];
}
