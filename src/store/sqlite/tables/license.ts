import { licenseAfter, isSameState, type SoldLicense, maxHistoryEntries } from '../../../domain/license.ts';
import type {
  HistoryTable,
  HistoryReads,
  ExportFilter,
  LicenseFilter,
  LicenseReads,
  LicenseTable,
} from '../../../service/tables.ts';
import { candidates, hasManyIn, isLicenseFound, searchParameters } from './search.ts';
import type { Page } from '../../../domain/page.ts';
import { maxFound, type Search } from '../../../domain/search.ts';
import type { SqlValue } from '../../sql.ts';
import { changeFrom, history, license, soldColumns, stateValues } from '../../tables/license.ts';
import { termReads, termValues, termWrites } from '../../tables/terms.ts';
import { afterText, soldBy, tenantIs, type SqliteSql } from '../statements.ts';

const selectLicense = `SELECT ${license.list} FROM license`;
const selectSold = `SELECT ${soldColumns} FROM license`;
const soldFrom = license.from as (row: never) => SoldLicense;

/*
 * The parameters are always product, enabled, buyer, the account and product of the tenant, and key. There is one
 * statement for each leading parameter, because a condition with IS NULL cannot use an index.
 */
const optional = {
  product: '($1 IS NULL OR product_key = $1)',
  enabled: '($2 IS NULL OR enabled = $2)',
  buyer: '($3 IS NULL OR lower(buyer_email) = lower($3))',
  tenant: tenantIs(4, 5),
};
const rest = `${optional.enabled} AND ${optional.tenant}`;
const ofNoBuyer = '$6 IS NULL AND $3 IS NULL';
const conditions = {
  byKey: `license_key = $6 AND ${optional.product} AND ${optional.buyer} AND ${rest}`,
  byBuyer: `lower(buyer_email) = lower($3) AND $6 IS NULL AND ${optional.product} AND ${rest}`,
  disabled: `enabled = 0 AND $2 = 0 AND ${ofNoBuyer} AND ${optional.product} AND ${optional.tenant}`,
  byProduct: `product_key = $1 AND ${ofNoBuyer} AND ${rest}`,
  ofProducts: `product_key IN (SELECT product_key FROM product AS license WHERE ${optional.tenant})
    AND ${ofNoBuyer} AND $1 IS NULL AND ${optional.enabled}`,
  any: `${ofNoBuyer} AND $1 IS NULL AND ${rest}`,
};

/** Up to this number, read all licenses of an account. Beyond it, a scan in the order of keys soon finds enough. */
const maxScanned = 20_000;

/** The number of licenses of whole products; triggers of the schema maintain it. */
const storedCount = `SELECT coalesce(sum(CASE $2 WHEN 0 THEN disabled WHEN 1 THEN licenses - disabled ELSE licenses END), 0)
  AS count FROM license_count AS license WHERE ${ofNoBuyer} AND ${optional.product} AND ${optional.tenant}`;

/** The condition of an export, with `exportParameters`. */
export const exported: string = `($1 IS NULL OR product_key = $1) AND ${tenantIs(2, 3)}`;

/** The same for an account with few licenses. Searches by product, so as not to read the licenses of other accounts. */
export const exportedOfFew: string = `product_key IN (SELECT product_key FROM product AS license WHERE ${exported})`;

export function exportParameters({ productKey, tenant }: ExportFilter): (string | null)[] {
  return [productKey ?? null, tenant?.accountId ?? null, tenant?.productKey ?? null];
}

export function licenseReads(sql: SqliteSql): LicenseReads {
  const listed = (condition: string) =>
    sql.all(
      `${selectSold} WHERE ${condition} AND license_key > $7 ORDER BY license_key LIMIT $8 OFFSET $9`,
      soldFrom,
    );
  const listedAndCounted = (condition: string) => ({
    list: listed(condition),
    count: sql.count(`SELECT count(*) AS count FROM license WHERE ${condition}`),
  });
  const count = sql.count(storedCount);
  const byKey = listedAndCounted(conditions.byKey);
  const byBuyer = listedAndCounted(conditions.byBuyer);
  const disabled = { list: listed(conditions.disabled), count };
  const byProduct = { list: listed(conditions.byProduct), count };
  const ofProducts = { list: listed(conditions.ofProducts), count };
  const any = { list: listed(conditions.any), count };
  const hasFew = (tenant: LicenseFilter['tenant']): boolean =>
    (tenant ?? null) !== null && count(...filterParameters({ tenant })) <= maxScanned;
  const search = searchReads(sql);
  const statementsFor = ({ licenseKey, productKey, buyerEmail, enabled, tenant }: LicenseFilter) => {
    if (licenseKey !== undefined) return byKey;
    if (buyerEmail !== undefined) return byBuyer;
    if (enabled === false) return disabled;
    if (productKey !== undefined) return byProduct;
    return hasFew(tenant) ? ofProducts : any;
  };
  const exportOf = (condition: string) =>
    sql.all(
      `${selectLicense} WHERE license_key > $4 AND ${condition} ORDER BY license_key LIMIT $5`,
      license.from,
    );
  const exportAll = exportOf(exported);
  const exportProduct = exportOf(`product_key = $1 AND ${tenantIs(2, 3)}`);
  const exportFew = exportOf(exportedOfFew);
  const exportFor = ({ productKey, tenant }: ExportFilter) => {
    if (productKey !== undefined) return exportProduct;
    return hasFew(tenant) ? exportFew : exportAll;
  };
  return {
    ...termReads(sql),
    get: sql.get(`${selectLicense} WHERE license_key = $1`, license.from),
    after: (filter, licenseKey, limit) => exportFor(filter)(...exportParameters(filter), licenseKey, limit),
    list: (filter, page) =>
      filter.search === undefined
        ? statementsFor(filter).list(...filterParameters(filter), afterText(page), page.limit, page.offset)
        : search.list(filter, filter.search, page),
    count: (filter) =>
      filter.search === undefined
        ? statementsFor(filter).count(...filterParameters(filter))
        : search.count(filter, filter.search),
  };
}

/** The same parameters, then those of the search. */
function searchReads(sql: SqliteSql): {
  list: (filter: LicenseFilter, search: Search, page: Page) => SoldLicense[];
  count: (filter: LicenseFilter, search: Search) => number;
} {
  const others = `($6 IS NULL OR license_key = $6) AND ${optional.product} AND ${optional.buyer} AND ${rest}`;
  const page = 'AND license_key > $9 ORDER BY license_key LIMIT $10 OFFSET $11';
  const ofFew = 'FROM candidate CROSS JOIN license ON license_key = found_key';
  const prepared = (keys: Search['keys']) => {
    const where = `WHERE ${isLicenseFound(7, keys)} AND ${others}`;
    return {
      scan: sql.all(`${selectSold} ${where} ${page}`, soldFrom),
      few: sql.all(
        `${candidates(8)} SELECT ${soldColumns} ${ofFew} ${where} ${page.replaceAll('license_key', 'found_key')}`,
        soldFrom,
      ),
      count: sql.count(`${candidates(8)} SELECT count(*) AS count ${ofFew} ${where}`),
    };
  };
  const statements = { anywhere: prepared('anywhere'), shown: prepared('shown') };
  const hasMany = hasManyIn(sql);
  return {
    list(filter, search, { limit, offset, cursor }) {
      const { scan, few } = statements[search.keys];
      const values = [...filterParameters(filter), ...searchParameters(search)];
      return (hasMany(search) ? scan : few)(...values, afterText({ limit, offset, cursor }), limit, offset);
    },
    count: (filter, search) =>
      hasMany(search)
        ? maxFound + 1
        : statements[search.keys].count(...filterParameters(filter), ...searchParameters(search)),
  };
}

function filterParameters(filter: LicenseFilter): SqlValue[] {
  const { productKey, enabled, buyerEmail, licenseKey, tenant } = filter;
  return [
    productKey ?? null,
    enabled ?? null,
    buyerEmail ?? null,
    tenant?.accountId ?? null,
    tenant?.productKey ?? null,
    licenseKey ?? null,
  ];
}

/** Changes are added to `changes`. */
export function licenseTable(sql: SqliteSql, changes: Pick<HistoryTable, 'add'>): LicenseTable {
  const add =
    sql.changes(`INSERT INTO license (license_key, product_key, buyer_email, uses, enabled, created_at,
       replaced_by, expires_at, grace_until, uses_limit, terms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (license_key) DO NOTHING`);
  const visible = sql.get(
    `${selectLicense} WHERE license_key = $1 AND CASE WHEN $3 IS NOT NULL THEN product_key = $3 ELSE ${soldBy(2)} END`,
    license.from,
  );
  const setState = sql.run(
    `UPDATE license SET uses = $2, enabled = $3, revision = revision + 1,
       disabled_revision = CASE WHEN $4 OR enabled > $3 THEN revision + 1 ELSE disabled_revision END
     WHERE license_key = $1 AND (uses <> $2 OR enabled <> $3 OR $4)`,
  );
  return {
    ...licenseReads(sql),
    add: ({ licenseKey, productKey, buyerEmail, uses, enabled, createdAt, replacedBy = null, ...terms }) =>
      add(licenseKey, productKey, buyerEmail, uses, enabled, createdAt, replacedBy, ...termValues(terms)) > 0,
    setState: ({ licenseKey, uses, enabled }, isRefund) => setState(licenseKey, uses, enabled, isRefund),
    ...termWrites(sql),
    clearDisabledRevisions: sql.run('UPDATE license SET disabled_revision = 0 WHERE disabled_revision > 0'),
    indexForSearch: searchIndex(sql),
    isRevokedSince: sql.exists(
      'SELECT 1 FROM license WHERE license_key = $1 AND enabled = 0 AND disabled_revision > $2',
    ),
    change({ tenant, licenseKey, trigger, historyEntry }) {
      const before = visible(licenseKey, tenant.accountId, tenant.productKey);
      if (before === null) return null;
      const changed = licenseAfter(before, trigger);
      if (isSameState(before, changed)) return { before, after: changed };
      const after = { ...changed, revision: (before.revision ?? 0) + 1 };
      setState(licenseKey, after.uses, after.enabled, false);
      if (historyEntry !== null) changes.add({ licenseKey, change: trigger, before, after, ...historyEntry });
      return { before, after };
    },
  };
}

function searchIndex(sql: SqliteSql): LicenseTable['indexForSearch'] {
  const after = 'FROM license_number WHERE number > (SELECT number FROM license_search_end)';
  const last = sql.value<number>(`SELECT max(number) FROM (SELECT number ${after} ORDER BY number LIMIT $1)`);
  const add = sql.run(`INSERT INTO license_search (rowid, text)
     SELECT number, license_key || ' ' || buyer_email
     FROM (SELECT number, license_key AS numbered ${after} AND number <= $1) CROSS JOIN license ON license_key = numbered`);
  const end = sql.run('UPDATE license_search_end SET number = $1');
  // Counting the rows would read all that are left, after each batch.
  const left = sql.count(`SELECT max(0, (SELECT coalesce(max(number), 0) FROM license_number)
     - (SELECT number FROM license_search_end)) AS count`);
  return (limit) => {
    const to = last(limit);
    if (to === null) return 0;
    add(to);
    end(to);
    return left();
  };
}

/** Remove old changes in batches: removing one at each change would double the writes. */
const trimBatch = 100;

/** The number of the first listed change of a key. Older changes may not have been removed yet. */
const firstListed = `coalesce((SELECT number FROM license_history WHERE license_key = $1
  ORDER BY number DESC LIMIT 1 OFFSET ${maxHistoryEntries - 1}), 0)`;

export function historyReads(sql: SqliteSql): HistoryReads {
  const list = sql.all(
    `SELECT ${history.list} FROM license_history
     WHERE license_key = $1 AND at >= $2 AND number < $3 AND number >= ${firstListed}
     ORDER BY number DESC LIMIT $4 OFFSET $5`,
    changeFrom,
  );
  const count = sql.count(
    'SELECT count(*) AS count FROM license_history WHERE license_key = $1 AND at >= $2',
  );
  return {
    list: (licenseKey, { limit, offset, cursor, since = 0 }) =>
      list(licenseKey, since, cursor?.[0] ?? Number.MAX_SAFE_INTEGER, limit, offset),
    count: (licenseKey, since = 0) => Math.min(count(licenseKey, since), maxHistoryEntries),
  };
}

/** The history of license keys. Each key numbers its changes. */
export function historyTable(sql: SqliteSql): HistoryTable {
  const numberAfter = (key: string): string =>
    `(SELECT coalesce(max(number), 0) FROM license_history WHERE license_key = ${key})`;
  const add = sql.count(
    `INSERT INTO license_history (license_key, number, at, change, credential, uses_before, enabled_before,
       uses_after, enabled_after, expires_before, expires_after)
     VALUES ($1, 1 + ${numberAfter('$1')}, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING number`,
  );
  const trim = sql.run('DELETE FROM license_history WHERE license_key = $1 AND number <= $2');
  return {
    ...historyReads(sql),
    add({ licenseKey, at, change, credential, before, after }) {
      const number = add(licenseKey, at, change, credential, ...stateValues(before, after));
      if (number > maxHistoryEntries && number % trimBatch === 0)
        trim(licenseKey, number - maxHistoryEntries);
    },
    changeKey: sql.run(`UPDATE license_history SET license_key = $2, number = number + ${numberAfter('$2')}
     WHERE license_key = $1`),
    prune: sql.changes(`DELETE FROM license_history WHERE (license_key, number) IN
       (SELECT license_key, number FROM license_history WHERE at < $1 ORDER BY at LIMIT $2)`),
  };
}
