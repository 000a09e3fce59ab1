import type { Account, Product, Collection } from '../../../domain/catalogue.ts';
import type {
  AccountReads,
  AccountTable,
  ProductFilter,
  ProductReads,
  ProductTable,
  CollectionReads,
  CollectionTable,
  AwaitableTable,
} from '../../../service/tables.ts';
import {
  prepareList,
  prepareQuery,
  prepareWrite,
  type Source,
  type WritingSource,
  type Condition,
} from '../statements.ts';
import { ofAccount } from './tenant.ts';

const accountColumns = 'account_id AS "accountId", name, created_at AS "createdAt"';
const accountFrom = (row: Account): Account => row;

export function accountReads(source: Source): AwaitableTable<AccountReads> {
  const { account } = source.names;
  const get = prepareQuery(
    source,
    `SELECT ${accountColumns} FROM ${account} WHERE account_id = $1`,
    accountFrom,
  );
  const byKeyDigest = prepareQuery(
    source,
    `SELECT ${accountColumns} FROM ${account} WHERE key_digest = $1`,
    accountFrom,
  );
  const listed = prepareList(
    source,
    { select: accountColumns, from: account, key: ['account_id'] },
    accountFrom,
  );
  return {
    get: (accountId) => get.first(accountId),
    byKeyDigest: (digest) => byKeyDigest.first(digest),
    list: ({ tenant }, page) => listed.list([ofAccount(tenant)], page),
    count: ({ tenant }) => listed.count([ofAccount(tenant)]),
  };
}

export function accountTable(source: WritingSource): AwaitableTable<AccountTable> {
  const { account } = source.names;
  const add = prepareWrite(
    source,
    `INSERT INTO ${account} (account_id, name, key_digest, created_at) VALUES ($1, $2, $3, $4)`,
  );
  const keyDigest = prepareQuery(
    source,
    `SELECT key_digest AS digest FROM ${account} WHERE account_id = $1`,
    ({ digest }: { digest: string }) => digest,
  );
  const setKeyDigest = prepareWrite(source, `UPDATE ${account} SET key_digest = $2 WHERE account_id = $1`);
  return {
    ...accountReads(source),
    add: ({ accountId, name, createdAt }, digest) => add(accountId, name, digest, createdAt),
    keyDigest: (accountId) => keyDigest.first(accountId),
    setKeyDigest: (accountId, digest) => setKeyDigest(accountId, digest),
  };
}

const productColumns = `product_key AS "productKey", account_id AS "accountId", name, recurring,
  created_at AS "createdAt", archived_at AS "archivedAt"`;
const productFrom = (row: Product): Product => row;

function productConditions({ tenant, archived }: ProductFilter): Condition[] {
  return [ofAccount(tenant), [(place) => `(archived_at IS NOT NULL) = ${place}`, archived]];
}

export function productReads(source: Source): AwaitableTable<ProductReads> {
  const { product } = source.names;
  const get = prepareQuery(
    source,
    `SELECT ${productColumns} FROM ${product} WHERE product_key = $1`,
    productFrom,
  );
  const byDigest = prepareQuery(
    source,
    `SELECT ${productColumns} FROM ${product} WHERE secret_digest = $1`,
    productFrom,
  );
  const listed = prepareList(
    source,
    { select: productColumns, from: product, key: ['product_key'] },
    productFrom,
  );
  return {
    get: (productKey) => get.first(productKey),
    bySecretDigest: (digest) => byDigest.first(digest),
    list: (filter, page) => listed.list(productConditions(filter), page),
    count: (filter) => listed.count(productConditions(filter)),
  };
}

export function productTable(source: WritingSource): AwaitableTable<ProductTable> {
  const { product } = source.names;
  const add = prepareWrite(
    source,
    `INSERT INTO ${product} (product_key, account_id, name, recurring, secret_digest, created_at, archived_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
  );
  const secretDigest = prepareQuery(
    source,
    `SELECT secret_digest AS digest FROM ${product} WHERE product_key = $1`,
    ({ digest }: { digest: string }) => digest,
  );
  const setSecretDigest = prepareWrite(
    source,
    `UPDATE ${product} SET secret_digest = $2 WHERE product_key = $1`,
  );
  const put = prepareWrite(
    source,
    `UPDATE ${product} SET name = $2, recurring = $3, archived_at = $4 WHERE product_key = $1`,
  );
  return {
    ...productReads(source),
    add: ({ productKey, accountId, name, recurring, createdAt, archivedAt }, digest) =>
      add(productKey, accountId, name, recurring, digest, createdAt, archivedAt),
    secretDigest: (productKey) => secretDigest.first(productKey),
    setSecretDigest: (productKey, digest) => setSecretDigest(productKey, digest),
    put: ({ productKey, name, recurring, archivedAt }) => put(productKey, name, recurring, archivedAt),
  };
}

const collectionFrom = (row: Collection): Collection => row;

export function collectionReads(source: Source): AwaitableTable<CollectionReads> {
  const { collection, collectionMember } = source.names;
  const columns = `collection_id AS "collectionId", account_id AS "accountId", name,
    ARRAY(SELECT member.product_key FROM ${collectionMember} AS member
      WHERE member.collection_id = ${collection}.collection_id ORDER BY member.position) AS "productKeys"`;
  const get = prepareQuery(
    source,
    `SELECT ${columns} FROM ${collection} WHERE collection_id = $1`,
    collectionFrom,
  );
  const listed = prepareList(
    source,
    { select: columns, from: collection, key: ['collection_id'] },
    collectionFrom,
  );
  return {
    get: (collectionId) => get.first(collectionId),
    list: ({ tenant }, page) => listed.list([ofAccount(tenant)], page),
    count: ({ tenant }) => listed.count([ofAccount(tenant)]),
  };
}

export function collectionTable(source: WritingSource): AwaitableTable<CollectionTable> {
  const { collection, collectionMember } = source.names;
  const add = prepareWrite(
    source,
    `INSERT INTO ${collection} (collection_id, account_id, name) VALUES ($1, $2, $3)`,
  );
  const addMembers = prepareWrite(
    source,
    `INSERT INTO ${collectionMember} (collection_id, position, product_key)
     SELECT $1, place - 1, product_key FROM unnest($2::text[]) WITH ORDINALITY AS member (product_key, place)`,
  );
  const rename = prepareWrite(source, `UPDATE ${collection} SET name = $2 WHERE collection_id = $1`);
  const removeMembers = prepareWrite(source, `DELETE FROM ${collectionMember} WHERE collection_id = $1`);
  return {
    ...collectionReads(source),
    add({ collectionId, accountId, name, productKeys }) {
      add(collectionId, accountId, name);
      addMembers(collectionId, productKeys);
    },
    put({ collectionId, name, productKeys }) {
      rename(collectionId, name);
      removeMembers(collectionId);
      addMembers(collectionId, productKeys);
    },
  };
}
