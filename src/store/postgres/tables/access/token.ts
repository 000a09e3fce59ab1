import type { Token } from '../../../../domain/access/principal.ts';
import type {
  TokenReads,
  TokenTable,
  OldCredential,
  OldCredentialReads,
  OldCredentialTable,
} from '../../../../service/access/tables.ts';
import type { AuthorityTable, AwaitableTable } from '../../../../service/tables.ts';
import {
  prepareList,
  prepareQuery,
  prepareWrite,
  type Source,
  type WritingSource,
} from '../../statements.ts';
import { ofAccount } from '../tenant.ts';

const columns = `token_id AS "tokenId", scopes, product_key AS "productKey", account_id AS "accountId", label,
  created_at AS "createdAt", last_used_at AS "lastUsedAt", expires_at AS "expiresAt"`;
const fromRow = (row: Omit<Token, 'scopes'> & { scopes: string }): Token => ({
  ...row,
  scopes: row.scopes.split(' ').filter(Boolean),
});

export function tokenReads(source: Source): AwaitableTable<TokenReads> {
  const { token } = source.names;
  const get = prepareQuery(source, `SELECT ${columns} FROM ${token} WHERE token_id = $1`, fromRow);
  const byDigest = prepareQuery(source, `SELECT ${columns} FROM ${token} WHERE digest = $1`, fromRow);
  const listed = prepareList(source, { select: columns, from: token, key: ['token_id'] }, fromRow);
  return {
    get: (tokenId) => get.first(tokenId),
    byDigest: (digest) => byDigest.first(digest),
    list: ({ tenant }, page) => listed.list([ofAccount(tenant)], page),
    count: ({ tenant }) => listed.count([ofAccount(tenant)]),
  };
}

export function tokenTable(source: WritingSource): AuthorityTable<TokenTable> {
  const { token } = source.names;
  const add = prepareWrite(
    source,
    `INSERT INTO ${token} (token_id, digest, scopes, product_key, account_id, label, created_at, last_used_at,
       expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
  );
  const setLastUsed = prepareWrite(
    source,
    `UPDATE ${token} SET last_used_at = $2 WHERE token_id = $1 AND coalesce(last_used_at, 0) < $2`,
  );
  const remove = prepareWrite(source, `DELETE FROM ${token} WHERE token_id = $1`);
  return {
    ...tokenReads(source),
    add({ tokenId, scopes, productKey, accountId, label, createdAt, lastUsedAt, expiresAt }, digest) {
      const owner = [productKey, accountId, label] as const;
      add(tokenId, digest, scopes.join(' '), ...owner, createdAt, lastUsedAt, expiresAt);
    },
    setLastUsed: (tokenId, at) => setLastUsed(tokenId, at),
    remove: (tokenId) => remove(tokenId),
  };
}

/** Rolled credentials stay valid for a while. */
export function oldCredentialReads(source: Source): AwaitableTable<OldCredentialReads> {
  const byDigest = prepareQuery(
    source,
    `SELECT kind, id, until FROM ${source.names.oldCredential} WHERE kind = $1 AND digest = $2`,
    (row: OldCredential): OldCredential => row,
  );
  return { byDigest: (kind, digest) => byDigest.first(kind, digest) };
}

/** An owner has at most one rolled credential. */
export function oldCredentialTable(source: WritingSource): AwaitableTable<OldCredentialTable> {
  const { oldCredential } = source.names;
  const put = prepareWrite(
    source,
    `INSERT INTO ${oldCredential} (kind, id, digest, until) VALUES ($1, $2, $3, $4)
     ON CONFLICT (kind, id) DO UPDATE SET digest = excluded.digest, until = excluded.until`,
  );
  const remove = prepareWrite(source, `DELETE FROM ${oldCredential} WHERE kind = $1 AND id = $2`);
  const prune = prepareWrite(source, `DELETE FROM ${oldCredential} WHERE until <= $1`);
  return {
    ...oldCredentialReads(source),
    put: ({ kind, id, until }, digest) => put(kind, id, digest, until),
    remove: ({ kind, id }) => remove(kind, id),
    prune: (before) => prune(before),
  };
}
