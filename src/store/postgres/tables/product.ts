import type { Product } from '../../../domain/product.ts';
import type { ProductFilter, ProductReads, ProductTable } from '../../../service/authority/tables.ts';
import type { AwaitableTable } from '../../../service/tables.ts';
import {
  prepareList,
  prepareQuery,
  prepareWrite,
  type Condition,
  type Source,
  type WritingSource,
} from '../statements.ts';
import { ofAccount } from './tenant.ts';

const columns = `product_key AS "productKey", account_id AS "accountId", name, recurring,
  created_at AS "createdAt", archived_at AS "archivedAt"`;
const fromRow = (row: Product): Product => row;

function conditionsOf({ tenant, archived }: ProductFilter): Condition[] {
  return [ofAccount(tenant), [(place) => `(archived_at IS NOT NULL) = ${place}`, archived]];
}

export function productReads(source: Source): AwaitableTable<ProductReads> {
  const { product } = source.names;
  const get = prepareQuery(source, `SELECT ${columns} FROM ${product} WHERE product_key = $1`, fromRow);
  const byDigest = prepareQuery(
    source,
    `SELECT ${columns} FROM ${product} WHERE secret_digest = $1`,
    fromRow,
  );
  const listed = prepareList(source, { select: columns, from: product, key: ['product_key'] }, fromRow);
  return {
    get: (productKey) => get.first(productKey),
    bySecretDigest: (digest) => byDigest.first(digest),
    list: (filter, page) => listed.list(conditionsOf(filter), page),
    count: (filter) => listed.count(conditionsOf(filter)),
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
