import type {
  Account,
  Collection,
  Product,
  LeaseTerms,
  ProductTerms,
  Purchase,
  PurchaseWithLicense,
} from '../../domain/catalogue.ts';
import type {
  AccountReads,
  AccountTable,
  CollectionReads,
  CollectionTable,
  ProductFilter,
  ProductReads,
  ProductTable,
  PurchaseTable,
} from '../../service/tables.ts';
import {
  columns,
  ofAccount,
  type Condition,
  type Engine,
  type On,
  type Sql,
  type WritingSql,
} from '../sql.ts';
import type { License } from '../../domain/license.ts';
import { license } from './license.ts';

const account = columns<Account>('account_id, name, created_at');

export function accountReads<E extends Engine>(sql: Sql<E>): On<E, AccountReads> {
  const select = `SELECT ${account.list} FROM latchkey.account`;
  const listed = sql.list<Account>({ select: account.list, from: 'latchkey.account', key: ['account_id'] });
  return {
    get: sql.get(`${select} WHERE account_id = $1`),
    byKeyDigest: sql.get(`${select} WHERE key_digest = $1`),
    list: ({ tenant }, page) => listed.list([ofAccount(tenant)], page),
    count: ({ tenant }) => listed.count([ofAccount(tenant)]),
  };
}

export function accountTable<E extends Engine>(sql: WritingSql<E>): On<E, AccountTable> {
  const add = sql.run(account.insert('account', 'key_digest'));
  return {
    ...accountReads(sql),
    add: (added, keyDigest) => add(...account.values(added), keyDigest),
    keyDigest: sql.value('SELECT key_digest FROM latchkey.account WHERE account_id = $1'),
    setKeyDigest: sql.run('UPDATE latchkey.account SET key_digest = $2 WHERE account_id = $1'),
  };
}

type ProductRow = Omit<Product, 'leaseTerms' | 'licenseTerms'> &
  LeaseTerms &
  Omit<ProductTerms, 'entitlements'> & { entitlements: ProductTerms['entitlements'] | null };

const product =
  columns<ProductRow>(`product_key, account_id, name, recurring BOOL, created_at, archived_at, seats,
  lease_hold_ms AS holdMs, lease_term_ms AS termMs, lease_refresh_ms AS refreshMs, lease_email AS showsEmail BOOL,
  license_for, entitlements JSON, expiry_grace_ms`);

function productFrom(row: never): Product {
  const all = product.from(row);
  const { productKey, accountId, name, recurring, createdAt, archivedAt } = all;
  const { seats, holdMs, termMs, refreshMs, showsEmail } = all;
  const leaseTerms = { seats, holdMs, termMs, refreshMs, showsEmail };
  const { licenseFor, entitlements, expiryGraceMs } = all;
  const licenseTerms = { licenseFor, entitlements: entitlements ?? [], expiryGraceMs };
  return { productKey, accountId, name, recurring, createdAt, archivedAt, leaseTerms, licenseTerms };
}

function productConditions({ tenant, archived }: ProductFilter): Condition[] {
  return [ofAccount(tenant), ['(archived_at IS NOT NULL) = $1', archived]];
}

export function productReads<E extends Engine>(sql: Sql<E>): On<E, ProductReads> {
  const select = `SELECT ${product.list} FROM latchkey.product`;
  const listed = sql.list(
    { select: product.list, from: 'latchkey.product', key: ['product_key'] },
    productFrom,
  );
  return {
    get: sql.get(`${select} WHERE product_key = $1`, productFrom),
    bySecretDigest: sql.get(`${select} WHERE secret_digest = $1`, productFrom),
    list: (filter, page) => listed.list(productConditions(filter), page),
    count: (filter) => listed.count(productConditions(filter)),
  };
}

export function productTable<E extends Engine>(sql: WritingSql<E>): On<E, ProductTable> {
  const add = sql.run(product.insert('product', 'secret_digest'));
  const put = sql.run(`UPDATE latchkey.product SET ${product.set(['product_key'])} WHERE product_key = $1`);
  const valuesOf = ({ leaseTerms, licenseTerms, ...same }: Product) => {
    const entitlements = licenseTerms.entitlements.length === 0 ? null : licenseTerms.entitlements;
    return product.values({ ...same, ...leaseTerms, ...licenseTerms, entitlements });
  };
  return {
    ...productReads(sql),
    add: (added, secretDigest) => add(...valuesOf(added), secretDigest),
    put: (changed) => put(...valuesOf(changed)),
    secretDigest: sql.value('SELECT secret_digest FROM latchkey.product WHERE product_key = $1'),
    setSecretDigest: sql.run('UPDATE latchkey.product SET secret_digest = $2 WHERE product_key = $1'),
    setGracedTo: sql.run('UPDATE latchkey.product SET graced_to = $2 WHERE product_key = $1'),
    halfGraced:
      sql.get(`SELECT product_key AS "productKey", expiry_grace_ms AS "graceMs", graced_to AS "gracedTo"
      FROM latchkey.product WHERE graced_to IS NOT NULL ORDER BY product_key LIMIT 1 ${sql.dialect.forUpdate}`),
  };
}

const collection = columns<Omit<Collection, 'productKeys'>>('collection_id, account_id, name');

function collectionFrom(row: Omit<Collection, 'productKeys'> & { productKeys: string }): Collection {
  return { ...row, productKeys: JSON.parse(row.productKeys) as string[] };
}

export function collectionReads<E extends Engine>(sql: Sql<E>): On<E, CollectionReads> {
  const select = `${collection.list}, (SELECT ${sql.dialect.arrayOf('member.product_key ORDER BY member.position')}
    FROM latchkey.collection_member AS member WHERE member.collection_id = collection.collection_id) AS "productKeys"`;
  const from = 'latchkey.collection';
  const listed = sql.list({ select, from, key: ['collection_id'] }, collectionFrom);
  return {
    get: sql.get(`SELECT ${select} FROM ${from} WHERE collection_id = $1`, collectionFrom),
    list: ({ tenant }, page) => listed.list([ofAccount(tenant)], page),
    count: ({ tenant }) => listed.count([ofAccount(tenant)]),
  };
}

export function collectionTable<E extends Engine>(sql: WritingSql<E>): On<E, CollectionTable> {
  const add = sql.run(collection.insert('collection'));
  const addMember = sql.run(
    'INSERT INTO latchkey.collection_member (collection_id, position, product_key) VALUES ($1, $2, $3)',
  );
  const rename = sql.run('UPDATE latchkey.collection SET name = $2 WHERE collection_id = $1');
  const removeMembers = sql.run('DELETE FROM latchkey.collection_member WHERE collection_id = $1');
  const addMembers = ({ collectionId, productKeys }: Collection): void => {
    for (const [position, productKey] of productKeys.entries()) addMember(collectionId, position, productKey);
  };
  return {
    ...collectionReads(sql),
    add(added) {
      add(...collection.values(added));
      addMembers(added);
    },
    put(changed) {
      rename(changed.collectionId, changed.name);
      removeMembers(changed.collectionId);
      addMembers(changed);
    },
  };
}

/* What the engines share about purchases. Each has its own lists. */

/** Of the table with the alias `purchase`. */
export const purchase = columns<Purchase>('purchase_id, license_key, created_at, refunded_at', 'purchase');

/** The columns for `purchaseFrom`. */
export const purchaseAndLicense: string = `${license.list}, purchase.purchase_id AS "purchaseId",
  purchase.created_at AS "soldAt", purchase.refunded_at AS "refundedAt"`;

type Row = License & Omit<Purchase, 'createdAt'> & { soldAt: number };

export function purchaseFrom(raw: never): PurchaseWithLicense {
  const { purchaseId, soldAt, refundedAt, ...sold } = license.from(raw) as Row;
  return {
    purchase: { purchaseId, licenseKey: sold.licenseKey, createdAt: soldAt, refundedAt },
    license: sold,
  };
}

export function purchaseWrites<E extends Engine>(
  sql: WritingSql<E>,
): On<E, Pick<PurchaseTable, 'add' | 'setRefunded'>> {
  const add = sql.run(purchase.insert('purchase'));
  const setRefunded = sql.run('UPDATE latchkey.purchase SET refunded_at = $2 WHERE purchase_id = $1');
  return {
    add: (added) => add(...purchase.values(added)),
    setRefunded: ({ purchaseId, refundedAt }) => setRefunded(purchaseId, refundedAt),
  };
}
