import type { DatabaseSync } from 'node:sqlite';
import type { Collection } from '../../../domain/collection.ts';
import type { CollectionReads, CollectionTable } from '../../../service/authority/tables.ts';
import { prepareChange, prepareCount, prepareQuery } from '../statements.ts';
import { afterText } from './cursor.ts';
import { ofAccount } from './tenant.ts';

type Row = Omit<Collection, 'productKeys'>;

const select = 'SELECT collection_id AS collectionId, account_id AS accountId, name FROM collection';
const fromRow = (row: Row): Row => ({ ...row });

export function collectionReads(database: DatabaseSync): CollectionReads {
  const get = prepareQuery(database, `${select} WHERE collection_id = ?`, fromRow);
  const list = prepareQuery(
    database,
    `${select} WHERE ${ofAccount} AND collection_id > ?2 ORDER BY collection_id LIMIT ?3 OFFSET ?4`,
    fromRow,
  );
  const count = prepareCount(database, `SELECT count(*) AS count FROM collection WHERE ${ofAccount}`);
  const members = prepareQuery(
    database,
    `SELECT product_key AS productKey FROM collection_member WHERE collection_id = ? ORDER BY position`,
    (row: { productKey: string }) => row.productKey,
  );
  const withMembers = (collection: Row): Collection => ({
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

export function collectionTable(database: DatabaseSync): CollectionTable {
  const add = prepareChange(
    database,
    `INSERT INTO collection (collection_id, account_id, name) VALUES (:collectionId, :accountId, :name)`,
  );
  const addMember = prepareChange(
    database,
    `INSERT INTO collection_member (collection_id, position, product_key)
     VALUES (:collectionId, :position, :productKey)`,
  );
  const rename = prepareChange(
    database,
    'UPDATE collection SET name = :name WHERE collection_id = :collectionId',
  );
  const removeMembers = prepareChange(
    database,
    'DELETE FROM collection_member WHERE collection_id = :collectionId',
  );
  const addMembers = ({ collectionId, productKeys }: Collection): void => {
    for (const [position, productKey] of productKeys.entries()) {
      addMember({ collectionId, position, productKey });
    }
  };
  return {
    ...collectionReads(database),
    add(collection) {
      const { collectionId, accountId, name } = collection;
      add({ collectionId, accountId, name });
      addMembers(collection);
    },
    put(collection) {
      const { collectionId, name } = collection;
      rename({ collectionId, name });
      removeMembers({ collectionId });
      addMembers(collection);
    },
  };
}
