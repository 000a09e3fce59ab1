import type { Token } from '../../../domain/access/principal.ts';
import type {
  TokenReads,
  TokenTable,
  OldCredential,
  OldCredentialReads,
  OldCredentialTable,
  IdempotencyReads,
  IdempotencyTable,
  StoredResponse,
  AuditFilter,
  AuditReads,
  AuditTable,
  RecordedAct,
  AuthorityTable,
  AwaitableTable,
  SettingReads,
  SettingTable,
} from '../../../service/tables.ts';
import {
  prepareList,
  prepareQuery,
  prepareWrite,
  type Source,
  type WritingSource,
  epochMs,
  statementOf,
  type SqlValue,
  type Statement,
  type Condition,
} from '../statements.ts';
import { ofAccount } from './tenant.ts';
import type { Idempotency } from '../../../service/ports.ts';
import type { Names } from '../names.ts';

const tokenColumns = `token_id AS "tokenId", scopes, product_key AS "productKey", account_id AS "accountId", label,
  created_at AS "createdAt", last_used_at AS "lastUsedAt", expires_at AS "expiresAt"`;
const tokenFrom = (row: Omit<Token, 'scopes'> & { scopes: string }): Token => ({
  ...row,
  scopes: row.scopes.split(' ').filter(Boolean),
});

export function tokenReads(source: Source): AwaitableTable<TokenReads> {
  const { token } = source.names;
  const get = prepareQuery(source, `SELECT ${tokenColumns} FROM ${token} WHERE token_id = $1`, tokenFrom);
  const byDigest = prepareQuery(source, `SELECT ${tokenColumns} FROM ${token} WHERE digest = $1`, tokenFrom);
  const listed = prepareList(source, { select: tokenColumns, from: token, key: ['token_id'] }, tokenFrom);
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

export type StoredRow = { fingerprint: string; value: string | null };

/** The stored response; null: the request is still running. */
export function storedResponseOf({ fingerprint, value }: StoredRow): StoredResponse | null {
  return value === null ? null : { fingerprint, value: JSON.parse(value) };
}

/** A response to store under its key. */
export type KeptResponse = Idempotency & { value: string; unchanged: boolean };

/** The statement that stores many responses. It fails if one of the keys has a response already. */
export function keepStatement({ idempotency }: Names): Statement {
  return statementOf(
    `INSERT INTO ${idempotency} (credential, key, fingerprint, value, at, unchanged)
     SELECT credential, key, fingerprint, value, ${epochMs}, unchanged FROM json_to_recordset($1)
       AS answer (credential text, key text, fingerprint text, value text, unchanged boolean)`,
  );
}

export function keptValues(answers: readonly KeptResponse[]): SqlValue[] {
  return [JSON.stringify(answers)];
}

/** The values are JSON; null: the request is still running. */
export function idempotencyReads(source: Source): AwaitableTable<IdempotencyReads> {
  const { idempotency } = source.names;
  const get = prepareQuery(
    source,
    `SELECT fingerprint, value FROM ${idempotency} WHERE credential = $1 AND key = $2`,
    storedResponseOf,
  );
  const unchanged = prepareQuery(
    source,
    `SELECT count(*) AS count FROM ${idempotency} WHERE credential = $1 AND unchanged`,
    ({ count }: { count: number }) => count,
  );
  return {
    get: (credential, key) => get.first(credential, key),
    unchangedCount: async (credential) => (await unchanged.first(credential)) ?? 0,
  };
}

export function idempotencyTable(source: WritingSource): AuthorityTable<IdempotencyTable> {
  const { idempotency } = source.names;
  const put = prepareWrite(
    source,
    `INSERT INTO ${idempotency} (credential, key, fingerprint, value, at, unchanged)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (credential, key) DO UPDATE SET fingerprint = excluded.fingerprint, value = excluded.value,
       at = excluded.at, unchanged = excluded.unchanged`,
  );
  const replace = prepareWrite(
    source,
    `INSERT INTO ${idempotency} (credential, key, fingerprint, value, at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (credential, key) DO UPDATE SET fingerprint = excluded.fingerprint, value = excluded.value,
       at = excluded.at`,
  );
  const remove = prepareWrite(source, `DELETE FROM ${idempotency} WHERE credential = $1 AND key = $2`);
  const clampToNow = prepareQuery(
    source,
    `WITH dated AS (
       UPDATE ${idempotency} SET at = $1 WHERE (credential, key) IN
         (SELECT credential, key FROM ${idempotency} WHERE at > $1 LIMIT $2::bigint)
       RETURNING 1
     ) SELECT count(*) AS count FROM dated`,
    ({ count }: { count: number }) => count,
  );
  const prune = prepareQuery(
    source,
    `WITH pruned AS (
       DELETE FROM ${idempotency} WHERE (credential, key) IN
         (SELECT credential, key FROM ${idempotency} WHERE at < $1 ORDER BY at LIMIT $2::bigint)
       RETURNING 1
     ) SELECT count(*) AS count FROM pruned`,
    ({ count }: { count: number }) => count,
  );
  return {
    ...idempotencyReads(source),
    put: (credential, key, { fingerprint, value, at, unchanged }) =>
      put(credential, key, fingerprint, JSON.stringify(value), at, unchanged),
    replace: (credential, key, { fingerprint, value, at }) =>
      replace(credential, key, fingerprint, JSON.stringify(value), at),
    remove: (credential, key) => remove(credential, key),
    clampToNow: async (now, limit) => (await clampToNow.first(now, limit)) ?? 0,
    prune: async (before, limit) => (await prune.first(before, limit)) ?? 0,
  };
}

const auditColumns = 'id, at, actor, action AS act, subject, detail';
const auditFrom = (row: RecordedAct): RecordedAct => row;

function auditConditions({ since, until, actor, act, subject }: AuditFilter): Condition[] {
  return [
    [(place) => `at >= ${place}`, since],
    [(place) => `at < ${place}`, until],
    [(place) => `actor = ${place}`, actor],
    [(place) => `action = ${place}`, act],
    [(place) => `subject = ${place}`, subject],
  ];
}

export function auditReads(source: Source): AwaitableTable<AuditReads> {
  const { audit } = source.names;
  const get = prepareQuery(source, `SELECT ${auditColumns} FROM ${audit} WHERE id = $1`, auditFrom);
  const listed = prepareList(
    source,
    { select: auditColumns, from: audit, key: ['at', 'id'], isLatestFirst: true },
    auditFrom,
  );
  return {
    get: (id) => get.first(id),
    list: (filter, page) => listed.list(auditConditions(filter), page),
    count: (filter) => listed.count(auditConditions(filter)),
  };
}

/** The schema prevents changing and removing audit events. */
export function auditTable(source: WritingSource): AwaitableTable<AuditTable> {
  const add = prepareWrite(
    source,
    `INSERT INTO ${source.names.audit} (at, actor, action, subject, detail) VALUES ($1, $2, $3, $4, $5)`,
  );
  return {
    ...auditReads(source),
    add: ({ at, actor, act, subject, detail }) => add(at, actor, act, subject, detail),
  };
}

export function settingReads(source: Source): AwaitableTable<SettingReads> {
  const get = prepareQuery(
    source,
    `SELECT value FROM ${source.names.setting} WHERE name = $1`,
    ({ value }: { value: string }) => value,
  );
  return { get: (name) => get.first(name) };
}

export function settingTable(source: WritingSource): AwaitableTable<SettingTable> {
  const set = prepareWrite(
    source,
    `INSERT INTO ${source.names.setting} (name, value) VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
  );
  return { ...settingReads(source), set: (name, value) => set(name, value) };
}
