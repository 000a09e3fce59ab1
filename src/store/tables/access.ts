import type { Token } from '../../domain/access/principal.ts';
import { endOfPrefix } from '../../domain/text.ts';
import type { Page } from '../../domain/page.ts';
import type {
  AuditFilter,
  AuditReads,
  AuditTable,
  IdempotencyReads,
  IdempotencyTable,
  OldCredential,
  OldCredentialReads,
  OldCredentialTable,
  RecordedAuditEntry,
  SettingReads,
  SettingTable,
  StoredResponse,
  TokenReads,
  TokenTable,
} from '../../service/tables.ts';
import {
  columns,
  ofAccount,
  type Condition,
  type Engine,
  type On,
  type Sql,
  type WritingSql,
} from '../sql.ts';

type TokenRow = Omit<Token, 'scopes'> & { scopes: string };

const token = columns<TokenRow>(
  'token_id, scopes, product_key, account_id, label, created_at, last_used_at, expires_at',
);

function tokenFrom(row: TokenRow): Token {
  return { ...row, scopes: row.scopes.split(' ').filter(Boolean) };
}

export function tokenReads<E extends Engine>(sql: Sql<E>): On<E, TokenReads> {
  const select = `SELECT ${token.list} FROM latchkey.token`;
  const listed = sql.list({ select: token.list, from: 'latchkey.token', key: ['token_id'] }, tokenFrom);
  return {
    get: sql.get(`${select} WHERE token_id = $1`, tokenFrom),
    byDigest: sql.get(`${select} WHERE digest = $1`, tokenFrom),
    list: ({ tenant }, page) => listed.list([ofAccount(tenant)], page),
    count: ({ tenant }) => listed.count([ofAccount(tenant)]),
  };
}

export function tokenTable<E extends Engine>(sql: WritingSql<E>): On<E, TokenTable> {
  const add = sql.run(token.insert('token', 'digest'));
  return {
    ...tokenReads(sql),
    add: ({ scopes, ...same }, digest) => add(...token.values({ ...same, scopes: scopes.join(' ') }), digest),
    digest: sql.value('SELECT digest FROM latchkey.token WHERE token_id = $1'),
    setDigest: sql.run('UPDATE latchkey.token SET digest = $2 WHERE token_id = $1'),
    setLastUsed: sql.run(
      'UPDATE latchkey.token SET last_used_at = $2 WHERE token_id = $1 AND coalesce(last_used_at, 0) < $2',
    ),
    remove: sql.run('DELETE FROM latchkey.token WHERE token_id = $1'),
  };
}

/** Rotated credentials stay valid for a while. */
export function oldCredentialReads<E extends Engine>(sql: Sql<E>): On<E, OldCredentialReads> {
  return {
    byDigest: sql.get<OldCredential>(
      'SELECT kind, id, until FROM latchkey.old_credential WHERE kind = $1 AND digest = $2',
    ),
  };
}

/** An owner has at most one rotated credential. */
export function oldCredentialTable<E extends Engine>(sql: WritingSql<E>): On<E, OldCredentialTable> {
  const put = sql.run(`INSERT INTO latchkey.old_credential (kind, id, until, digest) VALUES ($1, $2, $3, $4)
     ON CONFLICT (kind, id) DO UPDATE SET until = excluded.until, digest = excluded.digest`);
  const remove = sql.run('DELETE FROM latchkey.old_credential WHERE kind = $1 AND id = $2');
  return {
    ...oldCredentialReads(sql),
    put: ({ kind, id, until }, digest) => put(kind, id, until, digest),
    remove: ({ kind, id }) => remove(kind, id),
    prune: sql.run('DELETE FROM latchkey.old_credential WHERE until <= $1'),
  };
}

export type StoredRow = { fingerprint: string; value: string | null };

/** The stored response; null: the request is still running, which only other nodes see. */
export function storedResponseOf({ fingerprint, value }: StoredRow): StoredResponse | null {
  return value === null ? null : { fingerprint, value: JSON.parse(value) };
}

export function idempotencyReads<E extends Engine>(sql: Sql<E>): On<E, IdempotencyReads> {
  return {
    get: sql.get(
      'SELECT fingerprint, value FROM latchkey.idempotency WHERE credential = $1 AND key = $2',
      storedResponseOf as (row: never) => StoredResponse,
    ),
    unchangedCount: sql.count(
      'SELECT count(*) AS count FROM latchkey.idempotency WHERE credential = $1 AND unchanged = true',
    ),
  };
}

export function idempotencyTable<E extends Engine>(sql: WritingSql<E>): On<E, IdempotencyTable> {
  const replaced = `ON CONFLICT (credential, key) DO UPDATE
     SET fingerprint = excluded.fingerprint, value = excluded.value, kept_until = excluded.kept_until`;
  const put =
    sql.run(`INSERT INTO latchkey.idempotency (credential, key, fingerprint, value, kept_until, unchanged)
     VALUES ($1, $2, $3, $4, $5, $6) ${replaced}, unchanged = excluded.unchanged`);
  const replace = sql.run(`INSERT INTO latchkey.idempotency (credential, key, fingerprint, value, kept_until)
     VALUES ($1, $2, $3, $4, $5) ${replaced}`);
  const some = (which: string): string =>
    `(credential, key) IN (SELECT credential, key FROM latchkey.idempotency WHERE ${which} LIMIT $2)`;
  return {
    ...idempotencyReads(sql),
    put: (credential, key, { fingerprint, value, until, unchanged }) =>
      put(credential, key, fingerprint, JSON.stringify(value), until, unchanged),
    replace: (credential, key, { fingerprint, value, until }) =>
      replace(credential, key, fingerprint, JSON.stringify(value), until),
    renew: sql.run(`UPDATE latchkey.idempotency SET kept_until = $3
     WHERE credential = $1 AND key = $2 AND kept_until <= $3::bigint - $4::bigint`),
    remove: sql.run('DELETE FROM latchkey.idempotency WHERE credential = $1 AND key = $2'),
    keepUntilAtMost: sql.changes(
      `UPDATE latchkey.idempotency SET kept_until = $1 WHERE ${some('kept_until > $1')}`,
    ),
    prune: sql.changes(
      `DELETE FROM latchkey.idempotency WHERE ${some('kept_until < $1 ORDER BY kept_until')}`,
    ),
  };
}

const auditEvent = columns<RecordedAuditEntry>('id, at, actor, action AS act, subject, detail');

/** A text, or with `*` at its end all that begin with the text before it. */
function equalOrBegins(column: string, text: string | undefined): Condition[] {
  if (text?.endsWith('*') !== true) return [[`${column} = $1`, text]];
  const start = text.slice(0, -1);
  return [[`${column} >= $1 AND ${column} < $2`, start, endOfPrefix(start)]];
}

function auditConditions({ since, actor, act, subject }: AuditFilter): Condition[] {
  return [
    ['at >= $1', since],
    ...equalOrBegins('actor', actor),
    ...equalOrBegins('action', act),
    ['subject = $1', subject],
  ];
}

export function auditReads<E extends Engine>(sql: Sql<E>): On<E, AuditReads> {
  const from = 'latchkey.audit_event';
  const key = ['at', 'id'];
  const listed = sql.list<RecordedAuditEntry>({ select: auditEvent.list, from, key, isLatestFirst: true });
  // SQLite gives ids without gaps, and events are never removed, so the largest id is their number.
  const all = sql.engine === 'sqlite' ? sql.count(`SELECT max(id) FROM ${from}`) : () => listed.count([]);
  return {
    get: sql.get(`SELECT ${auditEvent.list} FROM ${from} WHERE id = $1`),
    list: (filter, page) => listed.list(auditConditions(filter), before(page, filter.until)),
    count(filter) {
      const conditions: Condition[] = [...auditConditions(filter), ['at < $1', filter.until]];
      return conditions.every(([, value]) => value === undefined) ? all() : listed.count(conditions);
    },
  };
}

/** A page of events before an instant. A single bound, because SQLite searches an index by one bound only. */
function before(page: Page, until: number | undefined): Page {
  const { cursor = [Infinity] } = page;
  return until === undefined || Number(cursor[0]) < until ? page : { ...page, cursor: [until, 0] };
}

/** The schema prevents changing and removing audit events. */
export function auditTable<E extends Engine>(sql: WritingSql<E>): On<E, AuditTable> {
  const add = sql.run(
    'INSERT INTO latchkey.audit_event (at, actor, action, subject, detail) VALUES ($1, $2, $3, $4, $5)',
  );
  return {
    ...auditReads(sql),
    add: ({ at, actor, act, subject, detail }) => add(at, actor, act, subject, detail),
  };
}

export function settingReads<E extends Engine>(sql: Sql<E>): On<E, SettingReads> {
  return {
    get: sql.value('SELECT value FROM latchkey.setting WHERE name = $1'),
    epoch: sql.value(`SELECT ${sql.dialect.epoch} AS epoch`),
  };
}

export function settingTable<E extends Engine>(sql: WritingSql<E>): On<E, SettingTable> {
  const into = 'INTO latchkey.setting (name, value) VALUES ($1, $2)';
  // On SQLite, an equal value is written as well, so that a start finds a full disk before it answers.
  const replace =
    sql.engine === 'sqlite'
      ? `INSERT OR REPLACE ${into}`
      : `INSERT ${into} ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
  return { ...settingReads(sql), set: sql.run(replace) };
}
