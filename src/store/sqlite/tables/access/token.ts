import type { DatabaseSync } from 'node:sqlite';
import type { Token } from '../../../../domain/access/principal.ts';
import type {
  TokenReads,
  TokenTable,
  OldCredential,
  OldCredentialReads,
  OldCredentialTable,
} from '../../../../service/access/tables.ts';
import { prepareChange, prepareCount, prepareQuery } from '../../statements.ts';
import { afterText } from '../cursor.ts';
import { ofAccount } from '../tenant.ts';

type Row = Omit<Token, 'scopes'> & { scopes: string };

const select = `SELECT token_id AS tokenId, scopes, product_key AS productKey, account_id AS accountId, label,
  created_at AS createdAt, last_used_at AS lastUsedAt, expires_at AS expiresAt FROM token`;
const fromRow = (row: Row): Token => ({ ...row, scopes: row.scopes.split(' ').filter(Boolean) });

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
    list: ({ tenant }, page) => list.all(tenant?.accountId ?? null, afterText(page), page.limit, page.offset),
    count: ({ tenant }) => count(tenant?.accountId ?? null),
  };
}

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

/** Rolled credentials stay valid for a while. */
export function oldCredentialReads(database: DatabaseSync): OldCredentialReads {
  const byDigest = prepareQuery(
    database,
    'SELECT kind, id, until FROM old_credential WHERE kind = ? AND digest = ?',
    (row: OldCredential): OldCredential => ({ ...row }),
  );
  return { byDigest: (kind, digest) => byDigest.first(kind, digest) };
}

/** An owner has at most one rolled credential. */
export function oldCredentialTable(database: DatabaseSync): OldCredentialTable {
  const put = prepareChange(
    database,
    'INSERT OR REPLACE INTO old_credential (kind, id, digest, until) VALUES (:kind, :id, :digest, :until)',
  );
  const remove = prepareChange(database, 'DELETE FROM old_credential WHERE kind = :kind AND id = :id');
  const prune = prepareChange(database, 'DELETE FROM old_credential WHERE until <= :before');
  return {
    ...oldCredentialReads(database),
    put({ kind, id, until }, digest) {
      put({ kind, id, until, digest });
    },
    remove({ kind, id }) {
      remove({ kind, id });
    },
    prune(before) {
      prune({ before });
    },
  };
}
