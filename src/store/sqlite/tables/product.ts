import type { DatabaseSync } from 'node:sqlite';
import type { Product } from '../../../domain/product.ts';
import type { ProductFilter, ProductReads, ProductTable } from '../../../service/authority/tables.ts';
import { bit, type Bit, prepareChange, prepareCount, prepareQuery } from '../statements.ts';
import { afterText } from './cursor.ts';
import { ofAccount } from './tenant.ts';

type Row = Omit<Product, 'recurring'> & { recurring: Bit };

const select = `SELECT product_key AS productKey, account_id AS accountId, name, recurring,
  created_at AS createdAt, archived_at AS archivedAt FROM product`;
const fromRow = (row: Row): Product => ({ ...row, recurring: row.recurring === 1 });

export function productReads(database: DatabaseSync): ProductReads {
  const get = prepareQuery(database, `${select} WHERE product_key = ?`, fromRow);
  const bySecretDigest = prepareQuery(database, `${select} WHERE secret_digest = ?`, fromRow);
  const condition = `${ofAccount} AND (?2 IS NULL OR (archived_at IS NOT NULL) = ?2)`;
  const list = prepareQuery(
    database,
    `${select} WHERE ${condition} AND product_key > ?3 ORDER BY product_key LIMIT ?4 OFFSET ?5`,
    fromRow,
  );
  const count = prepareCount(database, `SELECT count(*) AS count FROM product WHERE ${condition}`);
  const parametersOf = ({ tenant, archived }: ProductFilter) =>
    [tenant?.accountId ?? null, archived === undefined ? null : bit(archived)] as const;
  return {
    get: (productKey) => get.first(productKey),
    bySecretDigest: (digest) => bySecretDigest.first(digest),
    list: (filter, page) => list.all(...parametersOf(filter), afterText(page), page.limit, page.offset),
    count: (filter) => count(...parametersOf(filter)),
  };
}

export function productTable(database: DatabaseSync): ProductTable {
  const add = prepareChange(
    database,
    `INSERT INTO product (product_key, account_id, name, recurring, secret_digest, created_at, archived_at)
     VALUES (:productKey, :accountId, :name, :recurring, :secretDigest, :createdAt, :archivedAt)`,
  );
  const selectSecretDigest = prepareQuery(
    database,
    'SELECT secret_digest AS digest FROM product WHERE product_key = ?',
    (row: { digest: string }) => row.digest,
  );
  const setSecretDigest = prepareChange(
    database,
    'UPDATE product SET secret_digest = :secretDigest WHERE product_key = :productKey',
  );
  const put = prepareChange(
    database,
    `UPDATE product SET name = :name, recurring = :recurring, archived_at = :archivedAt
     WHERE product_key = :productKey`,
  );
  return {
    ...productReads(database),
    add({ recurring, ...product }, secretDigest) {
      add({ ...product, recurring: bit(recurring), secretDigest });
    },
    put({ productKey, name, recurring, archivedAt }) {
      put({ productKey, name, recurring: bit(recurring), archivedAt });
    },
    secretDigest: (productKey) => selectSecretDigest.first(productKey),
    setSecretDigest(productKey, secretDigest) {
      setSecretDigest({ productKey, secretDigest });
    },
  };
}
