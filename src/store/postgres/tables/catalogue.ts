import type { Account, Product, Collection } from '../../../domain/catalogue.ts';
import type { LeaseTerms } from '../../../domain/lease.ts';
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
import { type Prepare, type WritingPrepare, type Condition, ofAccount } from '../statements.ts';

const accountColumns = 'account_id AS "accountId", name, created_at AS "createdAt"';

export function accountReads(prepare: Prepare): AwaitableTable<AccountReads> {
  const { account } = prepare.names;
  const listed = prepare.list<Account>({ select: accountColumns, from: account, key: ['account_id'] });
  return {
    get: prepare.query<Account>(`SELECT ${accountColumns} FROM ${account} WHERE account_id = $1`).first,
    byKeyDigest: prepare.query<Account>(`SELECT ${accountColumns} FROM ${account} WHERE key_digest = $1`)
      .first,
    list: ({ tenant }, page) => listed.list([ofAccount(tenant)], page),
    count: ({ tenant }) => listed.count([ofAccount(tenant)]),
  };
}

export function accountTable(prepare: WritingPrepare): AwaitableTable<AccountTable> {
  const { account } = prepare.names;
  const add = prepare.write(
    `INSERT INTO ${account} (account_id, name, key_digest, created_at) VALUES ($1, $2, $3, $4)`,
  );
  return {
    ...accountReads(prepare),
    add: ({ accountId, name, createdAt }, digest) => add(accountId, name, digest, createdAt),
    keyDigest: prepare.column<string>(`SELECT key_digest FROM ${account} WHERE account_id = $1`).first,
    setKeyDigest: prepare.write(`UPDATE ${account} SET key_digest = $2 WHERE account_id = $1`),
  };
}

const productColumns = `product_key AS "productKey", account_id AS "accountId", name, recurring,
  created_at AS "createdAt", archived_at AS "archivedAt", seats, lease_hold_ms AS "holdMs", lease_term_ms AS "termMs",
  lease_refresh_ms AS "refreshMs", lease_email AS "showsEmail"`;

function productFrom({
  seats,
  holdMs,
  termMs,
  refreshMs,
  showsEmail,
  ...product
}: Omit<Product, 'leaseTerms'> & LeaseTerms): Product {
  return { ...product, leaseTerms: { seats, holdMs, termMs, refreshMs, showsEmail } };
}

function productConditions({ tenant, archived }: ProductFilter): Condition[] {
  return [ofAccount(tenant), [(place) => `(archived_at IS NOT NULL) = ${place}`, archived]];
}

export function productReads(prepare: Prepare): AwaitableTable<ProductReads> {
  const { product } = prepare.names;
  const listed = prepare.list({ select: productColumns, from: product, key: ['product_key'] }, productFrom);
  return {
    get: prepare.query(`SELECT ${productColumns} FROM ${product} WHERE product_key = $1`, productFrom).first,
    bySecretDigest: prepare.query(
      `SELECT ${productColumns} FROM ${product} WHERE secret_digest = $1`,
      productFrom,
    ).first,
    list: (filter, page) => listed.list(productConditions(filter), page),
    count: (filter) => listed.count(productConditions(filter)),
  };
}

export function productTable(prepare: WritingPrepare): AwaitableTable<ProductTable> {
  const { product } = prepare.names;
  const add =
    prepare.write(`INSERT INTO ${product} (product_key, account_id, name, recurring, secret_digest, created_at, archived_at,
       seats, lease_hold_ms, lease_term_ms, lease_refresh_ms, lease_email)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`);
  const put = prepare.write(
    `UPDATE ${product} SET name = $2, recurring = $3, archived_at = $4, seats = $5, lease_hold_ms = $6,
       lease_term_ms = $7, lease_refresh_ms = $8, lease_email = $9 WHERE product_key = $1`,
  );
  const valuesOf = ({ seats, holdMs, termMs, refreshMs, showsEmail }: LeaseTerms) =>
    [seats, holdMs, termMs, refreshMs, showsEmail] as const;
  return {
    ...productReads(prepare),
    add: ({ productKey, accountId, name, recurring, createdAt, archivedAt, leaseTerms }, digest) =>
      add(productKey, accountId, name, recurring, digest, createdAt, archivedAt, ...valuesOf(leaseTerms)),
    secretDigest: prepare.column<string>(`SELECT secret_digest FROM ${product} WHERE product_key = $1`).first,
    setSecretDigest: prepare.write(`UPDATE ${product} SET secret_digest = $2 WHERE product_key = $1`),
    put: ({ productKey, name, recurring, archivedAt, leaseTerms }) =>
      put(productKey, name, recurring, archivedAt, ...valuesOf(leaseTerms)),
  };
}

export function collectionReads(prepare: Prepare): AwaitableTable<CollectionReads> {
  const { collection, collectionMember } = prepare.names;
  const columns = `collection_id AS "collectionId", account_id AS "accountId", name,
    ARRAY(SELECT member.product_key FROM ${collectionMember} AS member
      WHERE member.collection_id = ${collection}.collection_id ORDER BY member.position) AS "productKeys"`;
  const listed = prepare.list<Collection>({ select: columns, from: collection, key: ['collection_id'] });
  return {
    get: prepare.query<Collection>(`SELECT ${columns} FROM ${collection} WHERE collection_id = $1`).first,
    list: ({ tenant }, page) => listed.list([ofAccount(tenant)], page),
    count: ({ tenant }) => listed.count([ofAccount(tenant)]),
  };
}

export function collectionTable(prepare: WritingPrepare): AwaitableTable<CollectionTable> {
  const { collection, collectionMember } = prepare.names;
  const add = prepare.write(
    `INSERT INTO ${collection} (collection_id, account_id, name) VALUES ($1, $2, $3)`,
  );
  const addMembers = prepare.write(`INSERT INTO ${collectionMember} (collection_id, position, product_key)
     SELECT $1, place - 1, product_key FROM unnest($2::text[]) WITH ORDINALITY AS member (product_key, place)`);
  const rename = prepare.write(`UPDATE ${collection} SET name = $2 WHERE collection_id = $1`);
  const removeMembers = prepare.write(`DELETE FROM ${collectionMember} WHERE collection_id = $1`);
  return {
    ...collectionReads(prepare),
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
