import type { Collection } from '../../../domain/collection.ts';
import type { CollectionReads, CollectionTable } from '../../../service/authority/tables.ts';
import type { AwaitableTable } from '../../../service/tables.ts';
import { prepareList, prepareQuery, prepareWrite, type Source, type WritingSource } from '../statements.ts';
import { ofAccount } from './tenant.ts';

const fromRow = (row: Collection): Collection => row;

export function collectionReads(source: Source): AwaitableTable<CollectionReads> {
  const { collection, collectionMember } = source.names;
  const columns = `collection_id AS "collectionId", account_id AS "accountId", name,
    ARRAY(SELECT member.product_key FROM ${collectionMember} AS member
      WHERE member.collection_id = ${collection}.collection_id ORDER BY member.position) AS "productKeys"`;
  const get = prepareQuery(source, `SELECT ${columns} FROM ${collection} WHERE collection_id = $1`, fromRow);
  const listed = prepareList(source, { select: columns, from: collection, key: ['collection_id'] }, fromRow);
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
