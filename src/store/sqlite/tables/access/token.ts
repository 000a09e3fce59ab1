import type { DatabaseSync } from 'node:sqlite';
import type { Token } from '../../../../domain/access/token.ts';
import type { TokenReads, TokenTable } from '../../../../service/access/tables.ts';
import { prepareChange, prepareCount, prepareQuery } from '../../statements.ts';
import { afterText } from '../cursor.ts';
import { ofAccount } from '../reach.ts';

type Row = Omit<Token, 'scopes'> & { scopes: string };

const select = `SELECT token_id AS tokenId, scopes, product_key AS productKey, account_id AS accountId, label,
  created_at AS createdAt, last_used_at AS lastUsedAt, expires_at AS expiresAt FROM token`;
const fromRow = (row: Row): Token => ({ ...row, scopes: row.scopes.split(' ').filter(Boolean) });

/** Prepares the reads of tokens. */
export function tokenReads(database: DatabaseSync): TokenReads {
  const get = prepareQuery(database, `${select} WHERE token_id = ?`, fromRow);
  const byDigest = prepareQuery(database, `${select} WHERE digest = ?`, fromRow);
  const list = prepareQuery(
    database,
    `${select} WHERE ${ofAccount} AND token_id > ?2 ORDER BY token_id LIMIT ?3 OFFSET ?4`,
    fromRow,
  );
  const count = prepareCount(database, `SELECT count(*) AS count FROM token WHERE ${ofAccount}`);
  return {
    get: (tokenId) => get.first(tokenId),
    byDigest: (digest) => byDigest.first(digest),
    list: ({ reach }, page) => list.all(reach?.accountId ?? null, afterText(page), page.limit, page.offset),
    count: ({ reach }) => count(reach?.accountId ?? null),
  };
}

/** Prepares the table of tokens. */
export function tokenTable(database: DatabaseSync): TokenTable {
  const add = prepareChange(
    database,
    `INSERT INTO token (token_id, digest, scopes, product_key, account_id, label, created_at, last_used_at,
       expires_at)
     VALUES (:tokenId, :digest, :scopes, :productKey, :accountId, :label, :createdAt, :lastUsedAt, :expiresAt)`,
  );
  const setLastUsed = prepareChange(
    database,
    'UPDATE token SET last_used_at = :at WHERE token_id = :tokenId AND coalesce(last_used_at, 0) < :at',
  );
  const remove = prepareChange(database, 'DELETE FROM token WHERE token_id = :tokenId');
  return {
    ...tokenReads(database),
    add({ scopes, ...same }, digest) {
      add({ ...same, digest, scopes: scopes.join(' ') });
    },
    setLastUsed(tokenId, at) {
      setLastUsed({ tokenId, at });
    },
    remove(tokenId) {
      remove({ tokenId });
    },
  };
}
