import {
  type License,
  type SoldLicense,
  countAfter,
  licenseTransitions,
  maxHistoryEntries,
} from '../../../domain/license.ts';
import type {
  ExportFilter,
  LicenseChange,
  LicenseFilter,
  LicenseReads,
  LicenseTable,
  AwaitableTable,
  AuthorityTable,
  HistoryReads,
  HistoryTable,
  ListedChange,
} from '../../../service/tables.ts';
import { endOfPrefix } from '../../../domain/text.ts';
import type { Names } from '../names.ts';
import {
  statementOf,
  type Condition,
  type Prepare,
  type WritingPrepare,
  type Row,
  type SqlValue,
  type Statement,
  ofTenant,
} from '../statements.ts';
import type { Idempotency } from '../../../service/ports.ts';
import { keyLock } from '../locks.ts';

/** The columns of a license, qualified for joins. */
export function licenseColumns({ license }: Pick<Names, 'license'>): string {
  return `${license}.license_key AS "licenseKey", ${license}.product_key AS "productKey",
    ${license}.buyer_email AS "buyerEmail", ${license}.uses, ${license}.enabled,
    ${license}.created_at AS "createdAt", ${license}.revision`;
}

/** The licenses of a buyer, without regard to letter case. */
export function ofBuyer({ license }: Names, buyerEmail: string | undefined): Condition {
  return [(place) => `lower(${license}.buyer_email) = lower(${place}::text COLLATE "C")`, buyerEmail];
}

/**
 * The licenses whose key or buyer begins with a text. Keys have letter case; a text in lower case also finds keys in
 * capitals.
 */
function found({ license }: Names, search: string | undefined): Condition {
  const range = (column: string, change: string, [from, to]: readonly string[]): string => {
    const changed = (place = ''): string => `${change}(${place}::text COLLATE "C")`;
    return `${column} >= ${changed(from)} AND ${column} < ${changed(to)}`;
  };
  const key = `${license}.license_key`;
  return [
    (...places) =>
      `(${range(key, '', places)} OR ${range(key, 'upper', places)} OR ${range(`lower(${license}.buyer_email)`, 'lower', places)})`,
    search,
    search === undefined ? undefined : endOfPrefix(search),
  ];
}

/** The conditions of an export. */
export function exported(names: Names, { productKey, tenant }: ExportFilter): Condition[] {
  return [[(place) => `${names.license}.product_key = ${place}`, productKey], ...ofTenant(names, tenant)];
}

function conditionsOf(names: Names, filter: LicenseFilter): Condition[] {
  const { license } = names;
  return [
    [(place) => `${license}.license_key = ${place}`, filter.licenseKey],
    [(place) => `${license}.enabled = ${place}`, filter.enabled],
    ofBuyer(names, filter.buyerEmail),
    found(names, filter.search),
    ...exported(names, filter),
  ];
}

export function licenseReads(prepare: Prepare): AwaitableTable<LicenseReads> {
  const { names } = prepare;
  const { license, purchase } = names;
  const columns = licenseColumns(names);
  // A key is sold once.
  const sale = (column: string): string =>
    `(SELECT max(sale.${column}) FROM ${purchase} AS sale WHERE sale.license_key = ${license}.license_key)`;
  const sold = `${columns}, ${sale('purchase_id')} AS "purchaseId", ${sale('refunded_at')} AS "refundedAt"`;
  const get = prepare.lookup<License>(
    `SELECT ${columns} FROM ${license} WHERE license_key = ANY ($1)`,
    'licenseKey',
  );
  const listed = prepare.list<SoldLicense>({ select: sold, from: license, key: ['license_key'] });
  const all = prepare.list<License>({ select: columns, from: license, key: ['license_key'] });
  return {
    get,
    after: (filter, licenseKey, limit) =>
      all.list(exported(names, filter), { limit, offset: 0, cursor: [licenseKey] }),
    list: (filter, page) => listed.list(conditionsOf(names, filter), page),
    count: (filter) => listed.count(conditionsOf(names, filter)),
  };
}

export function licenseTable(prepare: WritingPrepare): AwaitableTable<LicenseTable> {
  const { names } = prepare;
  const { license } = names;
  const add = prepare.query(
    `INSERT INTO ${license} (license_key, product_key, buyer_email, uses, enabled, created_at)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (license_key) DO NOTHING RETURNING 1`,
    () => true,
  );
  const setState = prepare.write(`UPDATE ${license} SET uses = $2, enabled = $3 WHERE license_key = $1`);
  const refund = prepare.write(`UPDATE ${license} SET uses = $2, enabled = $3, revision = revision + 1,
     disabled_revision = revision + 1 WHERE license_key = $1`);
  const revoked = prepare.column<boolean>(`SELECT NOT enabled AND disabled_revision > $2 FROM ${license}
     WHERE license_key = $1 FOR NO KEY UPDATE`);
  const clearDisabledRevisions = prepare.write(
    `UPDATE ${license} SET disabled_revision = 0 WHERE disabled_revision > 0`,
  );
  const statement = changeStatement(names);
  return {
    ...licenseReads(prepare),
    add: async ({ licenseKey, productKey, buyerEmail, uses, enabled, createdAt }) =>
      (await add.first(licenseKey, productKey, buyerEmail, uses, enabled, createdAt)) !== null,
    setState: ({ licenseKey, uses, enabled }, isRefund) =>
      (isRefund ? refund : setState)(licenseKey, uses, enabled),
    clearDisabledRevisions,
    isRevokedSince: async (licenseKey, revision) => (await revoked.first(licenseKey, revision)) === true,
    async change(change: LicenseChange) {
      const [changed = null] = changesFrom(1, await prepare.rows(statement, changeValues([change], false)));
      return changed;
    },
  };
}

export type ChangedLicense = { before: License; after: License };

const columns = `ordinal, license_key AS "licenseKey", product_key AS "productKey", buyer_email AS "buyerEmail", uses,
  enabled, created_at AS "createdAt", revision, uses_before AS "usesBefore", enabled_before AS "enabledBefore"`;

/** A change, and the idempotency key of its request, if any. */
type KeyedChange = { change: LicenseChange; idempotency: Idempotency | null };

/** The statement that changes licenses in order and records their history. It is one transaction. */
export function changeStatement(names: Names): Statement {
  return statementOf(`SELECT ${columns} FROM ${names.of('change_licenses')}($1, $2, ${maxHistoryEntries})`);
}

/**
 * The statement that takes the free idempotency keys of changes, and makes these changes and the changes without a key.
 * A key is free if no other request has it and there is no stored response.
 */
export function keyedChangeStatement(names: Names): Statement {
  const { idempotency } = names;
  return statementOf(
    `SELECT ${columns} FROM ${names.of('change_licenses')}((
       SELECT coalesce(json_agg(change), '[]')
       FROM ROWS FROM (json_array_elements($1), unnest($2::text[]), unnest($3::text[]))
         AS requested (change, by_credential, under_key)
       WHERE under_key IS NULL OR pg_try_advisory_xact_lock(${keyLock(names, 'by_credential', 'under_key')})
         AND (SELECT kept_until FROM ${idempotency} WHERE credential = by_credential AND key = under_key) IS NULL
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
    const { ordinal, usesBefore, enabledBefore, ...after } = row as ChangedRow;
    made[ordinal] = { before: { ...after, uses: usesBefore, enabled: enabledBefore }, after };
  }
  return made;
}

type HistoryRow = Pick<ListedChange, 'licenseKey' | 'number' | 'at' | 'change' | 'credential'> & {
  usesBefore: number;
  enabledBefore: boolean;
  usesAfter: number;
  enabledAfter: boolean;
};

function changeFrom({
  usesBefore,
  enabledBefore,
  usesAfter,
  enabledAfter,
  ...same
}: HistoryRow): ListedChange {
  return {
    ...same,
    before: { uses: usesBefore, enabled: enabledBefore },
    after: { uses: usesAfter, enabled: enabledAfter },
  };
}

export function historyReads(prepare: Prepare): AwaitableTable<HistoryReads> {
  const { licenseHistory } = prepare.names;
  const list = prepare.query(
    `SELECT license_key AS "licenseKey", number, at, change, credential, uses_before AS "usesBefore",
       enabled_before AS "enabledBefore", uses_after AS "usesAfter", enabled_after AS "enabledAfter"
     FROM ${licenseHistory} WHERE license_key = $1 AND at >= $2 AND number < $3
     ORDER BY number DESC LIMIT $4::bigint OFFSET $5::bigint`,
    changeFrom,
  );
  const count = prepare.column<number>(
    `SELECT count(*) AS count FROM ${licenseHistory} WHERE license_key = $1 AND at >= $2`,
  );
  return {
    list: (licenseKey, { limit, offset, cursor, since = 0 }) =>
      list.all(licenseKey, since, cursor?.[0] ?? Number.MAX_SAFE_INTEGER, limit, offset),
    count: async (licenseKey, since = 0) => (await count.first(licenseKey, since)) ?? 0,
  };
}

/**
 * The history of license keys. The license row has the number of its last change, because a count of the changes would
 * not see those that were committed while this transaction waited for the row.
 */
export function historyTable(prepare: WritingPrepare): AuthorityTable<HistoryTable> {
  const { license, licenseHistory } = prepare.names;
  const add = prepare.write(`WITH numbered AS (
       UPDATE ${license} SET changes = changes + 1 WHERE license_key = $1 RETURNING changes
     ), trimmed AS (
       DELETE FROM ${licenseHistory} WHERE license_key = $1
         AND number <= (SELECT changes FROM numbered) - ${maxHistoryEntries}
     )
     INSERT INTO ${licenseHistory} (license_key, number, at, change, credential, uses_before, enabled_before,
       uses_after, enabled_after)
     SELECT $1, changes, $2, $3, $4, $5, $6, $7, $8 FROM numbered`);
  return {
    ...historyReads(prepare),
    add: ({ licenseKey, at, change, credential, before, after }) =>
      add(licenseKey, at, change, credential, before.uses, before.enabled, after.uses, after.enabled),
    prune: prepare.changeCount(`DELETE FROM ${licenseHistory} WHERE (license_key, number) IN
         (SELECT license_key, number FROM ${licenseHistory} WHERE at < $1 ORDER BY at LIMIT $2::bigint)`),
  };
}
