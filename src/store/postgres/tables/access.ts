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
  RecordedAuditEntry,
  AuthorityTable,
  AwaitableTable,
  SettingReads,
  SettingTable,
} from '../../../service/tables.ts';
import {
  type Prepare,
  type WritingPrepare,
  statementOf,
  type Statement,
  type Condition,
  ofAccount,
} from '../statements.ts';
import type { Idempotency } from '../../../service/ports.ts';
import type { Names } from '../names.ts';

const tokenColumns = `token_id AS "tokenId", scopes, product_key AS "productKey", account_id AS "accountId", label,
  created_at AS "createdAt", last_used_at AS "lastUsedAt", expires_at AS "expiresAt"`;
const tokenFrom = (row: Omit<Token, 'scopes'> & { scopes: string }): Token => ({
  ...row,
  scopes: row.scopes.split(' ').filter(Boolean),
});

export function tokenReads(prepare: Prepare): AwaitableTable<TokenReads> {
  const { token } = prepare.names;
  const listed = prepare.list({ select: tokenColumns, from: token, key: ['token_id'] }, tokenFrom);
  return {
    get: prepare.query(`SELECT ${tokenColumns} FROM ${token} WHERE token_id = $1`, tokenFrom).first,
    byDigest: prepare.query(`SELECT ${tokenColumns} FROM ${token} WHERE digest = $1`, tokenFrom).first,
    list: ({ tenant }, page) => listed.list([ofAccount(tenant)], page),
    count: ({ tenant }) => listed.count([ofAccount(tenant)]),
  };
}

export function tokenTable(prepare: WritingPrepare): AuthorityTable<TokenTable> {
  const { token } = prepare.names;
  const add =
    prepare.write(`INSERT INTO ${token} (token_id, digest, scopes, product_key, account_id, label, created_at, last_used_at,
       expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`);
  return {
    ...tokenReads(prepare),
    add({ tokenId, scopes, productKey, accountId, label, createdAt, lastUsedAt, expiresAt }, digest) {
      const owner = [productKey, accountId, label] as const;
      add(tokenId, digest, scopes.join(' '), ...owner, createdAt, lastUsedAt, expiresAt);
    },
    setLastUsed: prepare.write(
      `UPDATE ${token} SET last_used_at = $2 WHERE token_id = $1 AND coalesce(last_used_at, 0) < $2`,
    ),
    remove: prepare.write(`DELETE FROM ${token} WHERE token_id = $1`),
  };
}

/** Rolled credentials stay valid for a while. */
export function oldCredentialReads(prepare: Prepare): AwaitableTable<OldCredentialReads> {
  const byDigest = prepare.query(
    `SELECT kind, id, until FROM ${prepare.names.oldCredential} WHERE kind = $1 AND digest = $2`,
    (row: OldCredential): OldCredential => row,
  );
  return { byDigest: (kind, digest) => byDigest.first(kind, digest) };
}

/** An owner has at most one rolled credential. */
export function oldCredentialTable(prepare: WritingPrepare): AwaitableTable<OldCredentialTable> {
  const { oldCredential } = prepare.names;
  const put = prepare.write(`INSERT INTO ${oldCredential} (kind, id, digest, until) VALUES ($1, $2, $3, $4)
     ON CONFLICT (kind, id) DO UPDATE SET digest = excluded.digest, until = excluded.until`);
  const remove = prepare.write(`DELETE FROM ${oldCredential} WHERE kind = $1 AND id = $2`);
  return {
    ...oldCredentialReads(prepare),
    put: ({ kind, id, until }, digest) => put(kind, id, digest, until),
    remove: ({ kind, id }) => remove(kind, id),
    prune: prepare.write(`DELETE FROM ${oldCredential} WHERE until <= $1`),
  };
}

export type StoredRow = { fingerprint: string; value: string | null };

/** The stored response; null: the request is still running. */
export function storedResponseOf({ fingerprint, value }: StoredRow): StoredResponse | null {
  return value === null ? null : { fingerprint, value: JSON.parse(value) };
}

/** A response to store under its key. */
export type ResponseToStore = Idempotency & { value: string; until: number; unchanged: boolean };

/** The statement that stores many responses. It fails if one of the keys has a response already. */
export function storeResponsesStatement({ idempotency }: Names): Statement {
  return statementOf(
    `INSERT INTO ${idempotency} (credential, key, fingerprint, value, kept_until, unchanged)
     SELECT credential, key, fingerprint, value, until, unchanged FROM json_to_recordset($1)
       AS answer (credential text, key text, fingerprint text, value text, until bigint, unchanged boolean)`,
  );
}

/** The values are JSON; null: the request is still running. */
export function idempotencyReads(prepare: Prepare): AwaitableTable<IdempotencyReads> {
  const { idempotency } = prepare.names;
  const unchanged = prepare.column<number>(
    `SELECT count(*) AS count FROM ${idempotency} WHERE credential = $1 AND unchanged`,
  );
  return {
    get: prepare.query(
      `SELECT fingerprint, value FROM ${idempotency} WHERE credential = $1 AND key = $2`,
      storedResponseOf,
    ).first,
    unchangedCount: async (credential) => (await unchanged.first(credential)) ?? 0,
  };
}

export function idempotencyTable(prepare: WritingPrepare): AuthorityTable<IdempotencyTable> {
  const { idempotency } = prepare.names;
  const put =
    prepare.write(`INSERT INTO ${idempotency} (credential, key, fingerprint, value, kept_until, unchanged)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (credential, key) DO UPDATE SET fingerprint = excluded.fingerprint, value = excluded.value,
       kept_until = excluded.kept_until, unchanged = excluded.unchanged`);
  const replace =
    prepare.write(`INSERT INTO ${idempotency} (credential, key, fingerprint, value, kept_until) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (credential, key) DO UPDATE SET fingerprint = excluded.fingerprint, value = excluded.value,
       kept_until = excluded.kept_until`);
  const renew = prepare.write(`UPDATE ${idempotency} SET kept_until = $3
     WHERE credential = $1 AND key = $2 AND kept_until <= $3::bigint - $4::bigint`);
  return {
    ...idempotencyReads(prepare),
    put: (credential, key, { fingerprint, value, until, unchanged }) =>
      put(credential, key, fingerprint, JSON.stringify(value), until, unchanged),
    replace: (credential, key, { fingerprint, value, until }) =>
      replace(credential, key, fingerprint, JSON.stringify(value), until),
    renew,
    remove: prepare.write(`DELETE FROM ${idempotency} WHERE credential = $1 AND key = $2`),
    keepUntilAtMost: prepare.changeCount(`UPDATE ${idempotency} SET kept_until = $1 WHERE (credential, key) IN
         (SELECT credential, key FROM ${idempotency} WHERE kept_until > $1 LIMIT $2::bigint)`),
    prune: prepare.changeCount(`DELETE FROM ${idempotency} WHERE (credential, key) IN
         (SELECT credential, key FROM ${idempotency} WHERE kept_until < $1 ORDER BY kept_until LIMIT $2::bigint)`),
  };
}

const auditColumns = 'id, at, actor, action AS act, subject, detail';

function auditConditions({ since, until, actor, act, subject }: AuditFilter): Condition[] {
  return [
    [(place) => `at >= ${place}`, since],
    [(place) => `at < ${place}`, until],
    [(place) => `actor = ${place}`, actor],
    [(place) => `action = ${place}`, act],
    [(place) => `subject = ${place}`, subject],
  ];
}

export function auditReads(prepare: Prepare): AwaitableTable<AuditReads> {
  const { audit } = prepare.names;
  const listed = prepare.list<RecordedAuditEntry>({
    select: auditColumns,
    from: audit,
    key: ['at', 'id'],
    isLatestFirst: true,
  });
  return {
    get: prepare.query<RecordedAuditEntry>(`SELECT ${auditColumns} FROM ${audit} WHERE id = $1`).first,
    list: (filter, page) => listed.list(auditConditions(filter), page),
    count: (filter) => listed.count(auditConditions(filter)),
  };
}

/** The schema prevents changing and removing audit events. */
export function auditTable(prepare: WritingPrepare): AwaitableTable<AuditTable> {
  const add = prepare.write(
    `INSERT INTO ${prepare.names.audit} (at, actor, action, subject, detail) VALUES ($1, $2, $3, $4, $5)`,
  );
  return {
    ...auditReads(prepare),
    add: ({ at, actor, act, subject, detail }) => add(at, actor, act, subject, detail),
  };
}

export function settingReads(prepare: Prepare): AwaitableTable<SettingReads> {
  const get = prepare.column<string>(`SELECT value FROM ${prepare.names.setting} WHERE name = $1`);
  return { get: (name) => get.first(name) };
}

export function settingTable(prepare: WritingPrepare): AwaitableTable<SettingTable> {
  const set = prepare.write(`INSERT INTO ${prepare.names.setting} (name, value) VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value`);
  return { ...settingReads(prepare), set: (name, value) => set(name, value) };
}
