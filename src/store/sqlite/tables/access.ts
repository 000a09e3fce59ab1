import type { Token } from '../../../domain/access/principal.ts';
import type {
  TokenReads,
  TokenTable,
  OldCredential,
  OldCredentialReads,
  OldCredentialTable,
  IdempotencyReads,
  StoredResponse,
  IdempotencyTable,
  AuditFilter,
  AuditReads,
  AuditTable,
  RecordedAuditEntry,
  SettingReads,
  SettingTable,
} from '../../../service/tables.ts';
import { type Prepare, afterText, ofAccount, beforeInstant } from '../statements.ts';
import type { PageKey } from '../../../domain/page.ts';

type TokenRow = Omit<Token, 'scopes'> & { scopes: string };

const selectToken = `SELECT token_id AS tokenId, scopes, product_key AS productKey, account_id AS accountId, label,
  created_at AS createdAt, last_used_at AS lastUsedAt, expires_at AS expiresAt FROM token`;
const tokenFrom = (row: TokenRow): Token => ({ ...row, scopes: row.scopes.split(' ').filter(Boolean) });

export function tokenReads(prepare: Prepare): TokenReads {
  const list = prepare.query(
    `${selectToken} WHERE ${ofAccount} AND token_id > ?2 ORDER BY token_id LIMIT ?3 OFFSET ?4`,
    tokenFrom,
  );
  const count = prepare.count(`SELECT count(*) AS count FROM token WHERE ${ofAccount}`);
  return {
    get: prepare.query(`${selectToken} WHERE token_id = ?`, tokenFrom).first,
    byDigest: prepare.query(`${selectToken} WHERE digest = ?`, tokenFrom).first,
    list: ({ tenant }, page) => list.all(tenant?.accountId ?? null, afterText(page), page.limit, page.offset),
    count: ({ tenant }) => count(tenant?.accountId ?? null),
  };
}

export function tokenTable(prepare: Prepare): TokenTable {
  const add =
    prepare.change(`INSERT INTO token (token_id, digest, scopes, product_key, account_id, label, created_at, last_used_at,
       expires_at)
     VALUES (:tokenId, :digest, :scopes, :productKey, :accountId, :label, :createdAt, :lastUsedAt, :expiresAt)`);
  const setLastUsed = prepare.change(
    'UPDATE token SET last_used_at = :at WHERE token_id = :tokenId AND coalesce(last_used_at, 0) < :at',
  );
  const remove = prepare.change('DELETE FROM token WHERE token_id = :tokenId');
  return {
    ...tokenReads(prepare),
    add: ({ scopes, ...same }, digest) => add({ ...same, digest, scopes: scopes.join(' ') }),
    setLastUsed: (tokenId, at) => setLastUsed({ tokenId, at }),
    remove: (tokenId) => remove({ tokenId }),
  };
}

/** Rolled credentials stay valid for a while. */
export function oldCredentialReads(prepare: Prepare): OldCredentialReads {
  const byDigest = prepare.query<OldCredential>(
    'SELECT kind, id, until FROM old_credential WHERE kind = ? AND digest = ?',
  );
  return { byDigest: (kind, digest) => byDigest.first(kind, digest) };
}

/** An owner has at most one rolled credential. */
export function oldCredentialTable(prepare: Prepare): OldCredentialTable {
  const put = prepare.change(
    'INSERT OR REPLACE INTO old_credential (kind, id, digest, until) VALUES (:kind, :id, :digest, :until)',
  );
  const prune = prepare.change('DELETE FROM old_credential WHERE until <= :before');
  return {
    ...oldCredentialReads(prepare),
    put: (credential, digest) => put({ ...credential, digest }),
    remove: prepare.change('DELETE FROM old_credential WHERE kind = :kind AND id = :id'),
    prune: (before) => prune({ before }),
  };
}

export function idempotencyReads(prepare: Prepare): IdempotencyReads {
  return {
    get: prepare.query(
      'SELECT fingerprint, value FROM idempotency WHERE credential = ? AND key = ?',
      (row: { fingerprint: string; value: string }): StoredResponse => ({
        fingerprint: row.fingerprint,
        value: JSON.parse(row.value),
      }),
    ).first,
    unchangedCount: prepare.count(
      'SELECT count(*) AS count FROM idempotency WHERE credential = ? AND unchanged = 1',
    ),
  };
}

export function idempotencyTable(prepare: Prepare): IdempotencyTable {
  const put =
    prepare.change(`INSERT OR REPLACE INTO idempotency (credential, key, fingerprint, value, kept_until, unchanged)
     VALUES (:credential, :key, :fingerprint, :value, :until, :unchanged)`);
  const replace = prepare.change(`INSERT INTO idempotency (credential, key, fingerprint, value, kept_until)
     VALUES (:credential, :key, :fingerprint, :value, :until)
     ON CONFLICT DO UPDATE SET fingerprint = excluded.fingerprint, value = excluded.value,
       kept_until = excluded.kept_until`);
  const renew = prepare.change(`UPDATE idempotency SET kept_until = :until
     WHERE credential = :credential AND key = :key AND kept_until <= :until - :byMs`);
  const remove = prepare.change('DELETE FROM idempotency WHERE credential = :credential AND key = :key');
  const keepUntilAtMost =
    prepare.change(`UPDATE idempotency SET kept_until = :until WHERE (credential, key) IN
       (SELECT credential, key FROM idempotency WHERE kept_until > :until LIMIT :limit)`);
  const prune = prepare.change(`DELETE FROM idempotency WHERE (credential, key) IN
       (SELECT credential, key FROM idempotency WHERE kept_until < :before ORDER BY kept_until LIMIT :limit)`);
  return {
    ...idempotencyReads(prepare),
    put: (credential, key, { fingerprint, value, until, unchanged }) =>
      put({ credential, key, fingerprint, value: JSON.stringify(value), until, unchanged }),
    replace: (credential, key, { fingerprint, value, until }) =>
      replace({ credential, key, fingerprint, value: JSON.stringify(value), until }),
    renew: (credential, key, until, byMs) => void renew({ credential, key, until, byMs }),
    remove: (credential, key) => remove({ credential, key }),
    keepUntilAtMost: (until, limit) => keepUntilAtMost({ until, limit }).changes,
    prune: (before, limit) => prune({ before, limit }).changes,
  };
}

const selectAudit = 'SELECT id, at, actor, action AS act, subject, detail FROM audit_event';

/*
 * The parameters are always since, actor, act, subject, and the instant and id before which the page ends. There is one
 * statement for each leading parameter, because a condition with IS NULL cannot use an index.
 */
const between = 'at >= ?1 AND (at, id) < (?5, ?6)';
const optional = {
  actor: '(?2 IS NULL OR actor = ?2)',
  act: '(?3 IS NULL OR action = ?3)',
  subject: '(?4 IS NULL OR subject = ?4)',
};
const conditions = {
  bySubject: `subject = ?4 AND ${between} AND ${optional.actor} AND ${optional.act}`,
  byActor: `actor = ?2 AND ${between} AND ${optional.act} AND ${optional.subject}`,
  byAct: `action = ?3 AND ${between} AND ${optional.actor} AND ${optional.subject}`,
  byTime: `${between} AND ${optional.actor} AND ${optional.act} AND ${optional.subject}`,
};

export function auditReads(prepare: Prepare): AuditReads {
  const prepareFiltered = (condition: string) => ({
    list: prepare.query<RecordedAuditEntry>(
      `${selectAudit} WHERE ${condition} ORDER BY at DESC, id DESC LIMIT ?7 OFFSET ?8`,
    ),
    count: prepare.count(`SELECT count(*) AS count FROM audit_event WHERE ${condition}`),
  });
  const bySubject = prepareFiltered(conditions.bySubject);
  const byActor = prepareFiltered(conditions.byActor);
  const byAct = prepareFiltered(conditions.byAct);
  const byTime = prepareFiltered(conditions.byTime);
  // The ids have no gaps, because events are never removed. So the largest id is the count.
  const all = prepare.count('SELECT coalesce(max(id), 0) AS count FROM audit_event');
  const isOfAll = ({ since, until, actor, act, subject }: AuditFilter): boolean =>
    [since, until, actor, act, subject].every((value) => value === undefined);
  const statementsFor = ({ actor, act, subject }: AuditFilter) => {
    if (subject !== undefined) return bySubject;
    if (actor !== undefined) return byActor;
    return act === undefined ? byTime : byAct;
  };
  return {
    get: prepare.query<RecordedAuditEntry>(`${selectAudit} WHERE id = ?`).first,
    list: (filter, { cursor, limit, offset }) =>
      statementsFor(filter).list.all(...filterParameters(filter, cursor), limit, offset),
    count: (filter) => (isOfAll(filter) ? all() : statementsFor(filter).count(...filterParameters(filter))),
  };
}

function filterParameters(
  { since = 0, until = Number.MAX_SAFE_INTEGER, actor, act, subject }: AuditFilter,
  cursor?: PageKey,
): (string | number | null)[] {
  return [since, actor ?? null, act ?? null, subject ?? null, ...beforeInstant(cursor, until, 0)];
}

/** The schema prevents changing and removing audit events. */
export function auditTable(prepare: Prepare): AuditTable {
  return {
    ...auditReads(prepare),
    add: prepare.change(
      'INSERT INTO audit_event (at, actor, action, subject, detail) VALUES (:at, :actor, :act, :subject, :detail)',
    ),
  };
}

export function settingReads(prepare: Prepare): SettingReads {
  const get = prepare.column<string>('SELECT value FROM setting WHERE name = ?');
  return { get: (name) => get.first(name) };
}

export function settingTable(prepare: Prepare): SettingTable {
  const set = prepare.change('INSERT OR REPLACE INTO setting (name, value) VALUES (:name, :value)');
  return {
    ...settingReads(prepare),
    set: (name, value) => set({ name, value }),
  };
}
