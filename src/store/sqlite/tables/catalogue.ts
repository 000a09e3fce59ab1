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
} from '../../../service/tables.ts';
import { type Prepare, afterText, ofAccount, bit, type Bit } from '../statements.ts';

const selectAccount = 'SELECT account_id AS accountId, name, created_at AS createdAt FROM account';

export function accountReads(prepare: Prepare): AccountReads {
  const list = prepare.query<Account>(
    `${selectAccount} WHERE ${ofAccount} AND account_id > ?2 ORDER BY account_id LIMIT ?3 OFFSET ?4`,
  );
  const count = prepare.count(`SELECT count(*) AS count FROM account WHERE ${ofAccount}`);
  return {
    get: prepare.query<Account>(`${selectAccount} WHERE account_id = ?`).first,
    byKeyDigest: prepare.query<Account>(`${selectAccount} WHERE key_digest = ?`).first,
    list: ({ tenant }, page) => list.all(tenant?.accountId ?? null, afterText(page), page.limit, page.offset),
    count: ({ tenant }) => count(tenant?.accountId ?? null),
  };
}

export function accountTable(prepare: Prepare): AccountTable {
  const add = prepare.change(`INSERT INTO account (account_id, name, key_digest, created_at)
     VALUES (:accountId, :name, :keyDigest, :createdAt)`);
  const setKeyDigest = prepare.change(
    'UPDATE account SET key_digest = :keyDigest WHERE account_id = :accountId',
  );
  return {
    ...accountReads(prepare),
    add: (account, keyDigest) => add({ ...account, keyDigest }),
    keyDigest: prepare.column<string>('SELECT key_digest FROM account WHERE account_id = ?').first,
    setKeyDigest: (accountId, keyDigest) => setKeyDigest({ accountId, keyDigest }),
  };
}

type ProductRow = Omit<Product, 'recurring' | 'leaseTerms'> &
  Omit<LeaseTerms, 'showsEmail'> & { recurring: Bit; showsEmail: Bit };

const selectProduct = `SELECT product_key AS productKey, account_id AS accountId, name, recurring,
  created_at AS createdAt, archived_at AS archivedAt, seats, lease_hold_ms AS holdMs, lease_term_ms AS termMs,
  lease_refresh_ms AS refreshMs, lease_email AS showsEmail FROM product`;

function productFrom({
  seats,
  holdMs,
  termMs,
  refreshMs,
  showsEmail,
  recurring,
  ...row
}: ProductRow): Product {
  return {
    ...row,
    recurring: recurring === 1,
    leaseTerms: { seats, holdMs, termMs, refreshMs, showsEmail: showsEmail === 1 },
  };
}

export function productReads(prepare: Prepare): ProductReads {
  const condition = `${ofAccount} AND (?2 IS NULL OR (archived_at IS NOT NULL) = ?2)`;
  const list = prepare.query(
    `${selectProduct} WHERE ${condition} AND product_key > ?3 ORDER BY product_key LIMIT ?4 OFFSET ?5`,
    productFrom,
  );
  const count = prepare.count(`SELECT count(*) AS count FROM product WHERE ${condition}`);
  const parametersOf = ({ tenant, archived }: ProductFilter) =>
    [tenant?.accountId ?? null, archived === undefined ? null : bit(archived)] as const;
  return {
    get: prepare.query(`${selectProduct} WHERE product_key = ?`, productFrom).first,
    bySecretDigest: prepare.query(`${selectProduct} WHERE secret_digest = ?`, productFrom).first,
    list: (filter, page) => list.all(...parametersOf(filter), afterText(page), page.limit, page.offset),
    count: (filter) => count(...parametersOf(filter)),
  };
}

export function productTable(prepare: Prepare): ProductTable {
  const add =
    prepare.change(`INSERT INTO product (product_key, account_id, name, recurring, secret_digest, created_at, archived_at,
       seats, lease_hold_ms, lease_term_ms, lease_refresh_ms, lease_email)
     VALUES (:productKey, :accountId, :name, :recurring, :secretDigest, :createdAt, :archivedAt,
       :seats, :holdMs, :termMs, :refreshMs, :showsEmail)`);
  const put =
    prepare.change(`UPDATE product SET name = :name, recurring = :recurring, archived_at = :archivedAt,
       seats = :seats, lease_hold_ms = :holdMs, lease_term_ms = :termMs, lease_refresh_ms = :refreshMs,
       lease_email = :showsEmail
     WHERE product_key = :productKey`);
  const setSecretDigest = prepare.change(
    'UPDATE product SET secret_digest = :secretDigest WHERE product_key = :productKey',
  );
  return {
    ...productReads(prepare),
    add: ({ leaseTerms, ...product }, secretDigest) => add({ ...product, ...leaseTerms, secretDigest }),
    put: ({ leaseTerms, ...product }) => put({ ...product, ...leaseTerms }),
    secretDigest: prepare.column<string>('SELECT secret_digest FROM product WHERE product_key = ?').first,
    setSecretDigest: (productKey, secretDigest) => setSecretDigest({ productKey, secretDigest }),
  };
}

type CollectionRow = Omit<Collection, 'productKeys'>;

const selectCollection =
  'SELECT collection_id AS collectionId, account_id AS accountId, name FROM collection';

export function collectionReads(prepare: Prepare): CollectionReads {
  const get = prepare.query<CollectionRow>(`${selectCollection} WHERE collection_id = ?`);
  const list = prepare.query<CollectionRow>(
    `${selectCollection} WHERE ${ofAccount} AND collection_id > ?2 ORDER BY collection_id LIMIT ?3 OFFSET ?4`,
  );
  const count = prepare.count(`SELECT count(*) AS count FROM collection WHERE ${ofAccount}`);
  const members = prepare.column<string>(
    `SELECT product_key FROM collection_member WHERE collection_id = ? ORDER BY position`,
  );
  const withMembers = (collection: CollectionRow): Collection => ({
    ...collection,
    productKeys: members.all(collection.collectionId),
  });
  return {
    get(collectionId) {
      const collection = get.first(collectionId);
      return collection === null ? null : withMembers(collection);
    },
    list: ({ tenant }, page) =>
      list.all(tenant?.accountId ?? null, afterText(page), page.limit, page.offset).map(withMembers),
    count: ({ tenant }) => count(tenant?.accountId ?? null),
  };
}

export function collectionTable(prepare: Prepare): CollectionTable {
  const add = prepare.change(
    `INSERT INTO collection (collection_id, account_id, name) VALUES (:collectionId, :accountId, :name)`,
  );
  const addMember = prepare.change(`INSERT INTO collection_member (collection_id, position, product_key)
     VALUES (:collectionId, :position, :productKey)`);
  const rename = prepare.change('UPDATE collection SET name = :name WHERE collection_id = :collectionId');
  const removeMembers = prepare.change('DELETE FROM collection_member WHERE collection_id = :collectionId');
  const addMembers = (collectionId: string, productKeys: readonly string[]): void => {
    for (const [position, productKey] of productKeys.entries()) {
      addMember({ collectionId, position, productKey });
    }
  };
  return {
    ...collectionReads(prepare),
    add({ productKeys, ...collection }) {
      add(collection);
      addMembers(collection.collectionId, productKeys);
    },
    put({ collectionId, name, productKeys }) {
      rename({ collectionId, name });
      removeMembers({ collectionId });
      addMembers(collectionId, productKeys);
    },
  };
}
