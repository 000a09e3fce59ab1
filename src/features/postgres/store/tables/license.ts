import {
  type License,
  type SoldLicense,
  countAfter,
  licenseTransitions,
  maxHistoryEntries,
} from '../../../../domain/license.ts';
import type {
  ExportFilter,
  LicenseChange,
  LicenseFilter,
  LicenseReads,
  LicenseTable,
  AuthorityTable,
  HistoryReads,
  HistoryTable,
} from '../../../../service/tables.ts';
import { maxFound, type Search } from '../../../../domain/search.ts';
import { isFound } from '../../../../store/tables/search.ts';
import type { Idempotency } from '../../../../service/ports.ts';
import { ofTenant, type Condition, type On, type SqlValue } from '../../../../store/sql.ts';
import { changeFrom, history, license, soldColumns, stateValues } from '../../../../store/tables/license.ts';
import { termReads, termValues, termWrites } from '../../../../store/tables/terms.ts';
import { keyLock } from '../locks.ts';
import { inSchema, type Names } from '../names.ts';
import {
  dialect,
  searchedText,
  statementOf,
  type PostgresSql,
  type Row,
  type Statement,
  type WritingPostgresSql,
} from '../statements.ts';

/** The licenses of a buyer, without regard to letter case. */
export function ofBuyer(buyerEmail: string | undefined): Condition {
  return ['lower(license.buyer_email) = lower($1::text COLLATE "C")', buyerEmail];
}

/** The licenses that a search finds. The first condition is for the index of trigrams. */
export function found(search: Search | undefined): Condition[] {
  if (search === undefined) return [];
  const { keys, text } = search;
  const isMatch = isFound(dialect, '$1', {
    keys,
    key: 'license.license_key',
    others: ['license.buyer_email'],
  });
  return [
    [`${searchedText} LIKE lower($1::text COLLATE "C")`, `%${text.replaceAll(/[%_\\]/g, '\\$&')}%`],
    [isMatch, text],
  ];
}

/** The conditions of an export. */
export function exported({ productKey, tenant }: ExportFilter): Condition[] {
  return [['license.product_key = $1', productKey], ...ofTenant('license', tenant)];
}

function conditionsOf(filter: LicenseFilter): Condition[] {
  return [
    ['license.license_key = $1', filter.licenseKey],
    ['license.enabled = $1', filter.enabled],
    ofBuyer(filter.buyerEmail),
    ...found(filter.search),
    ...exported(filter),
  ];
}

export function licenseReads(sql: PostgresSql): On<'postgres', LicenseReads> {
  const from = 'latchkey.license';
  const key = ['license_key'];
  const soldFrom = license.from as (row: never) => SoldLicense;
  const listed = sql.list({ select: soldColumns, from, key }, soldFrom);
  const searched = sql.planned.list({ select: soldColumns, from, key }, soldFrom);
  const all = sql.list({ select: license.list, from, key }, license.from);
  const get = sql.lookup<Row>(
    `SELECT ${license.list} FROM ${from} WHERE license_key = ANY ($1)`,
    'licenseKey',
  );
  return {
    ...termReads(sql),
    async get(licenseKey) {
      const row = await get(licenseKey);
      // Concurrent reads share a row.
      return row && license.from({ ...row } as never);
    },
    after: (filter, licenseKey, limit) =>
      all.list(exported(filter), { limit, offset: 0, cursor: [licenseKey] }),
    list: (filter, page) =>
      (filter.search === undefined ? listed : searched).list(conditionsOf(filter), page),
    count: (filter) =>
      filter.search === undefined
        ? listed.count(conditionsOf(filter))
        : searched.countUpTo(conditionsOf(filter), maxFound + 1),
  };
}

export function licenseTable(sql: WritingPostgresSql): AuthorityTable<LicenseTable> {
  const add = sql.exists(
    `INSERT INTO latchkey.license (license_key, product_key, buyer_email, uses, enabled, created_at,
       replaced_by, expires_at, grace_until, uses_limit, terms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (license_key) DO NOTHING RETURNING 1`,
  );
  const setState = sql.run('UPDATE latchkey.license SET uses = $2, enabled = $3 WHERE license_key = $1');
  const refund = sql.run(`UPDATE latchkey.license SET uses = $2, enabled = $3, revision = revision + 1,
     disabled_revision = revision + 1 WHERE license_key = $1`);
  const revoked = sql.value<boolean>(`SELECT NOT enabled AND disabled_revision > $2 FROM latchkey.license
     WHERE license_key = $1 FOR NO KEY UPDATE`);
  const changed = sql.all<Row>(changeText);
  return {
    ...licenseReads(sql),
    ...termWrites(sql),
    add: ({ licenseKey, productKey, buyerEmail, uses, enabled, createdAt, replacedBy = null, ...terms }) =>
      add(licenseKey, productKey, buyerEmail, uses, enabled, createdAt, replacedBy, ...termValues(terms)),
    setState: ({ licenseKey, uses, enabled }, isRefund) =>
      (isRefund ? refund : setState)(licenseKey, uses, enabled),
    clearDisabledRevisions: sql.run(
      'UPDATE latchkey.license SET disabled_revision = 0 WHERE disabled_revision > 0',
    ),
    isRevokedSince: async (licenseKey, revision) => (await revoked(licenseKey, revision)) === true,
    async change(change: LicenseChange) {
      const [made = null] = changesFrom(1, await changed(...changeValues([change], false)));
      return made;
    },
  };
}

export type ChangedLicense = { before: License; after: License };

const columns = `ordinal, license_key AS "licenseKey", product_key AS "productKey", buyer_email AS "buyerEmail", uses,
  enabled, created_at AS "createdAt", expires_at AS "expiresAt", grace_until AS "graceUntil", uses_limit AS "usesLimit",
  terms, revision, uses_before AS "usesBefore", enabled_before AS "enabledBefore"`;

/** A change, and the idempotency key of its request, if any. */
type KeyedChange = { change: LicenseChange; idempotency: Idempotency | null };

const changeText = `SELECT ${columns} FROM latchkey.change_licenses($1, $2, ${maxHistoryEntries})`;

/** The statement that changes licenses in order and records their history. It is one transaction. */
export function changeStatement(names: Names): Statement {
  return statementOf(inSchema(names, changeText));
}

/**
 * The statement that takes the free idempotency keys of changes, and makes these changes and the changes without a key.
 * A key is free if no other request has it and there is no stored response.
 */
export function keyedChangeStatement(names: Names): Statement {
  return statementOf(
    `SELECT ${columns} FROM ${names.of('change_licenses')}((
       SELECT coalesce(json_agg(change), '[]')
       FROM ROWS FROM (json_array_elements($1), unnest($2::text[]), unnest($3::text[]))
         AS requested (change, by_credential, under_key)
       WHERE under_key IS NULL OR pg_try_advisory_xact_lock(${keyLock(names, 'by_credential', 'under_key')})
         AND (SELECT kept_until FROM ${names.of('idempotency')}
           WHERE credential = by_credential AND key = under_key) IS NULL
     ), true, ${maxHistoryEntries})`,
  );
}

export function keyedChangeValues(changes: readonly KeyedChange[]): SqlValue[] {
  return [
    JSON.stringify(changes.map(({ change }, ordinal) => changeRequest(change, ordinal))),
    changes.map(({ idempotency }) => idempotency?.credential ?? null),
    changes.map(({ idempotency }) => idempotency?.key ?? null),
  ];
}

/**
 * The values of the statement; they contain the rule of the domain. `skipsLocked`: skip a license that another
 * transaction is changing; otherwise wait for it.
 */
export function changeValues(changes: readonly LicenseChange[], skipsLocked: boolean): SqlValue[] {
  return [JSON.stringify(changes.map(changeRequest)), skipsLocked];
}

function changeRequest(
  { tenant, licenseKey, trigger, historyEntry }: LicenseChange,
  ordinal: number,
): object {
  return {
    ordinal,
    key: licenseKey,
    account: tenant.accountId,
    product: tenant.productKey,
    stepAtZero: countAfter(0, trigger),
    step: countAfter(1, trigger) - 1,
    ifEnabled: licenseTransitions.enabled[trigger] === 'enabled',
    ifDisabled: licenseTransitions.disabled[trigger] === 'enabled',
    at: historyEntry?.at ?? null,
    change: trigger,
    credential: historyEntry?.credential ?? null,
  };
}

type ChangedRow = License & { ordinal: number; usesBefore: number; enabledBefore: boolean };

/** The result of each change; null: the tenant has no such license, or the license was skipped. */
export function changesFrom(count: number, rows: readonly Row[]): (ChangedLicense | null)[] {
  const made = Array.from({ length: count }, (): ChangedLicense | null => null);
  for (const row of rows) {
    const { ordinal, usesBefore, enabledBefore, ...after } = license.from({ ...row } as never) as ChangedRow;
    made[ordinal] = { before: { ...after, uses: usesBefore, enabled: enabledBefore }, after };
  }
  return made;
}

export function historyReads(sql: PostgresSql): On<'postgres', HistoryReads> {
  const list = sql.all(
    `SELECT ${history.list} FROM latchkey.license_history WHERE license_key = $1 AND at >= $2 AND number < $3
     ORDER BY number DESC LIMIT $4 OFFSET $5`,
    changeFrom,
  );
  const count = sql.count(
    'SELECT count(*) AS count FROM latchkey.license_history WHERE license_key = $1 AND at >= $2',
  );
  return {
    list: (licenseKey, { limit, offset, cursor, since = 0 }) =>
      list(licenseKey, since, cursor?.[0] ?? Number.MAX_SAFE_INTEGER, limit, offset),
    count: (licenseKey, since = 0) => count(licenseKey, since),
  };
}

/**
 * The history of license keys. The license row has the number of its last change, because a count of the changes would
 * not see those that were committed while this transaction waited for the row.
 */
export function historyTable(sql: WritingPostgresSql): AuthorityTable<HistoryTable> {
  const add = sql.run(`WITH numbered AS (
       UPDATE latchkey.license SET changes = changes + 1 WHERE license_key = $1 RETURNING changes
     ), trimmed AS (
       DELETE FROM latchkey.license_history WHERE license_key = $1
         AND number <= (SELECT changes FROM numbered) - ${maxHistoryEntries}
     )
     INSERT INTO latchkey.license_history (license_key, number, at, change, credential, uses_before, enabled_before,
       uses_after, enabled_after, expires_before, expires_after)
     SELECT $1, changes, $2, $3, $4, $5, $6, $7, $8, $9, $10 FROM numbered`);
  return {
    ...historyReads(sql),
    add: ({ licenseKey, at, change, credential, before, after }) =>
      add(licenseKey, at, change, credential, ...stateValues(before, after)),
    prune: sql.changes(`DELETE FROM latchkey.license_history WHERE (license_key, number) IN
       (SELECT license_key, number FROM latchkey.license_history WHERE at < $1 ORDER BY at LIMIT $2)`),
  };
}
