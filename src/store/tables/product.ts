import type { DatabaseSync } from 'node:sqlite';
import type { Product } from '../../domain/product.ts';
import type { ProductReads, ProductTable } from '../../service/tables.ts';
import { bit, type Bit, inReach, prepareChange, prepareCount, prepareQuery } from './statements.ts';

type Row = Omit<Product, 'recurring'> & { recurring: Bit };

const select = `SELECT product_key AS productKey, account_id AS accountId, name, recurring,
  created_at AS createdAt FROM product`;
const fromRow = (row: Row): Product => ({ ...row, recurring: row.recurring === 1 });

/** Prepares the reads of products. */
export function productReads(database: DatabaseSync): ProductReads {
  const get = prepareQuery(database, `${select} WHERE product_key = ?`, fromRow);
  const bySecretDigest = prepareQuery(database, `${select} WHERE secret_digest = ?`, fromRow);
  const list = prepareQuery(
    database,
    `${select} WHERE ${inReach} ORDER BY product_key LIMIT ?2 OFFSET ?3`,
    fromRow,
  );
  const count = prepareCount(database, `SELECT count(*) AS count FROM product WHERE ${inReach}`);
  return {
    get: (productKey) => get.first(productKey),
    bySecretDigest: (digest) => bySecretDigest.first(digest),
    list: ({ reach }, { limit, offset }) => list.all(reach?.accountId ?? null, limit, offset),
    count: ({ reach }) => count(reach?.accountId ?? null),
  };
}

/** Prepares the table of products. */
export function productTable(database: DatabaseSync): ProductTable {
  const add = prepareChange(
    database,
    `INSERT INTO product (product_key, account_id, name, recurring, secret_digest, created_at)
     VALUES (:productKey, :accountId, :name, :recurring, :secretDigest, :createdAt)`,
  );
  const setSecretDigest = prepareChange(
    database,
    'UPDATE product SET secret_digest = :secretDigest WHERE product_key = :productKey',
  );
  return {
    ...productReads(database),
    add({ productKey, accountId, name, recurring, createdAt }, secretDigest) {
      add({ productKey, accountId, name, recurring: bit(recurring), createdAt, secretDigest });
    },
    setSecretDigest(productKey, secretDigest) {
      setSecretDigest({ productKey, secretDigest });
    },
  };
}
