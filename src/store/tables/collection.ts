import type { DatabaseSync } from 'node:sqlite';
import type { Collection } from '../../domain/collection.ts';
import type { CollectionReads, CollectionTable } from '../../service/tables.ts';
import { prepareChange, prepareQuery } from './statements.ts';

/** Prepares the reads of collections of products. */
export function collectionReads(database: DatabaseSync): CollectionReads {
  const get = prepareQuery(
    database,
    `SELECT collection_id AS collectionId, account_id AS accountId, name FROM collection
     WHERE collection_id = ?`,
    (row: Omit<Collection, 'productKeys'>) => ({ ...row }),
  );
  const members = prepareQuery(
    database,
    `SELECT product_key AS productKey FROM collection_member WHERE collection_id = ? ORDER BY position`,
    (row: { productKey: string }) => row.productKey,
  );
  return {
    get(collectionId) {
      const collection = get.first(collectionId);
      return collection === null ? null : { ...collection, productKeys: members.all(collectionId) };
    },
  };
}

/** Prepares the table of collections of products. */
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
  return {
    ...collectionReads(database),
    add({ collectionId, accountId, name, productKeys }) {
      add({ collectionId, accountId, name });
      for (const [position, productKey] of productKeys.entries()) {
        addMember({ collectionId, position, productKey });
      }
    },
  };
}
