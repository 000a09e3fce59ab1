import type { DatabaseSync } from 'node:sqlite';
import type { Account } from '../../../domain/account.ts';
import type { AccountReads, AccountTable } from '../../../service/authority/tables.ts';
import { prepareChange, prepareCount, prepareQuery } from '../statements.ts';
import { afterText } from './cursor.ts';
import { ofAccount } from './tenant.ts';

const select = 'SELECT account_id AS accountId, name, created_at AS createdAt FROM account';
const fromRow = (row: Account): Account => ({ ...row });

export function accountReads(database: DatabaseSync): AccountReads {
  const get = prepareQuery(database, `${select} WHERE account_id = ?`, fromRow);
  const byKeyDigest = prepareQuery(database, `${select} WHERE key_digest = ?`, fromRow);
  const list = prepareQuery(
    database,
    `${select} WHERE ${ofAccount} AND account_id > ?2 ORDER BY account_id LIMIT ?3 OFFSET ?4`,
    fromRow,
  );
  const count = prepareCount(database, `SELECT count(*) AS count FROM account WHERE ${ofAccount}`);
  return {
    get: (accountId) => get.first(accountId),
    byKeyDigest: (digest) => byKeyDigest.first(digest),
    list: ({ tenant }, page) => list.all(tenant?.accountId ?? null, afterText(page), page.limit, page.offset),
    count: ({ tenant }) => count(tenant?.accountId ?? null),
  };
}

export function accountTable(database: DatabaseSync): AccountTable {
  const add = prepareChange(
    database,
    `INSERT INTO account (account_id, name, key_digest, created_at)
     VALUES (:accountId, :name, :keyDigest, :createdAt)`,
  );
  const selectKeyDigest = prepareQuery(
    database,
    'SELECT key_digest AS digest FROM account WHERE account_id = ?',
    (row: { digest: string }) => row.digest,
  );
  const setKeyDigest = prepareChange(
    database,
    'UPDATE account SET key_digest = :keyDigest WHERE account_id = :accountId',
  );
  return {
    ...accountReads(database),
    add({ accountId, name, createdAt }, keyDigest) {
      add({ accountId, name, createdAt, keyDigest });
    },
    keyDigest: (accountId) => selectKeyDigest.first(accountId),
    setKeyDigest(accountId, keyDigest) {
      setKeyDigest({ accountId, keyDigest });
    },
  };
}
