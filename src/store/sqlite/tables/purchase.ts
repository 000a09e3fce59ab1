import type { Page, PageKey } from '../../../domain/page.ts';
import type { PurchaseWithLicense } from '../../../domain/catalogue.ts';
import type { ExportFilter, PurchaseFilter, PurchaseReads, PurchaseTable } from '../../../service/tables.ts';
import { maxFound, type Search } from '../../../domain/search.ts';
import type { SqlValue } from '../../sql.ts';
import { purchase, purchaseAndLicense, purchaseFrom, purchaseWrites } from '../../tables/catalogue.ts';
import { exported, exportedOfFew, exportParameters } from './license.ts';
import {
  candidates,
  candidatesAmongAll,
  findsManyIn,
  hasManyIn,
  isLicenseFound,
  searchParameters,
} from './search.ts';
import { tenantIs, type SqliteSql } from '../statements.ts';

const onKey = 'ON license.license_key = purchase.license_key';
const joined = `FROM purchase JOIN license ${onKey}`;
/** SQLite takes a CROSS JOIN in the order in which it is written. */
const licensesFirst = `FROM license CROSS JOIN purchase ${onKey}`;
const select = `SELECT ${purchaseAndLicense}`;

/*
 * The parameters are always key, buyer, product, refunded, since, the instant before which the page ends, the account
 * and product of the tenant, and the id before which the page ends within that instant. There is one statement for each
 * leading parameter, because a condition with IS NULL cannot use an index.
 */
const ofProduct = `($3 IS NULL OR product_key = $3) AND ${tenantIs(7, 8)}`;
const isRefunded = '($4 IS NULL OR (refunded_at IS NOT NULL) = $4)';
const others = `${ofProduct} AND ${isRefunded}`;
/** The same condition for the table of products. */
const products = `SELECT product_key FROM product AS license WHERE ${ofProduct}`;
const byDate = `purchase.created_at >= $5 AND (purchase.created_at, purchase.purchase_id) < ($6, $9)`;
/** The same condition without the index of dates (`+`), for a few purchases that another index finds. */
const inDate = `+purchase.created_at >= $5 AND (+purchase.created_at, +purchase.purchase_id) < ($6, $9)`;
const byBuyer = 'lower(buyer_email) = lower($2)';
const conditions = {
  byKey: `purchase.license_key = $1 AND ($2 IS NULL OR ${byBuyer}) AND ${inDate} AND ${others}`,
  byBuyer: `${byBuyer} AND $1 IS NULL AND ${inDate} AND ${others}`,
  ofProducts: `license.product_key IN (${products})
    AND $1 IS NULL AND $2 IS NULL AND ${inDate} AND ${isRefunded}`,
  any: `${byDate} AND $1 IS NULL AND $2 IS NULL AND ${others}`,
};

/** Up to this number, read all purchases of the products. Beyond it, a scan by date soon finds enough. */
const maxScanned = 2_000;

/** The number of purchases of all times; triggers of the schema maintain it. */
const storedCount = `SELECT coalesce(sum(CASE $4 WHEN 1 THEN refunded WHEN 0 THEN purchases - refunded ELSE purchases END), 0)
  AS count FROM purchase_count AS license WHERE $1 IS NULL AND $2 IS NULL AND $5 < $6 AND $9 IS NOT NULL AND ${ofProduct}`;

/** Counts the purchases of every product without reading licenses. */
const countOfEveryProduct = `SELECT count(*) AS count FROM purchase WHERE ${byDate} AND ${isRefunded}
  AND coalesce($1, $2, $3, $7, $8) IS NULL`;

export function purchaseReads(sql: SqliteSql): PurchaseReads {
  const prepareFiltered = (condition: string, from = joined) => ({
    list: sql.all(
      `${select} ${from} WHERE ${condition}
       ORDER BY purchase.created_at DESC, purchase.purchase_id DESC LIMIT $10 OFFSET $11`,
      purchaseFrom,
    ),
    count: sql.count(`SELECT count(*) AS count ${from} WHERE ${condition}`),
  });
  const ofKey = prepareFiltered(conditions.byKey);
  const ofBuyer = prepareFiltered(conditions.byBuyer);
  const ofProducts = prepareFiltered(conditions.ofProducts, licensesFirst);
  const any = prepareFiltered(conditions.any);
  const countStored = sql.count(storedCount);
  const hasFew = ({ tenant, productKey }: ExportFilter): boolean => {
    const whole = { tenant, productKey };
    return !isOfEveryProduct(whole) && countStored(...filterParameters(whole)) <= maxScanned;
  };
  const statementsFor = (filter: PurchaseFilter) => {
    const { licenseKey, buyerEmail, productKey, tenant } = filter;
    if (licenseKey !== undefined) return ofKey;
    if (buyerEmail !== undefined) return ofBuyer;
    return hasFew({ tenant, productKey }) ? ofProducts : any;
  };
  const search = searchReads(sql);
  const countEvery = sql.count(countOfEveryProduct);
  const countFor = (filter: PurchaseFilter) => {
    const { licenseKey, buyerEmail, since, until } = filter;
    if (licenseKey !== undefined || buyerEmail !== undefined) return statementsFor(filter).count;
    if (since === undefined && until === undefined) return countStored;
    return isOfEveryProduct(filter) ? countEvery : statementsFor(filter).count;
  };
  const exportOf = (condition: string, from: string) =>
    sql.all(`${select} ${from} WHERE ${condition} ORDER BY purchase.purchase_id LIMIT $5`, purchaseFrom);
  const exportAll = exportOf(`purchase.purchase_id > $4 AND ${exported}`, joined);
  const exportFew = exportOf(`+purchase.purchase_id > $4 AND ${exportedOfFew}`, licensesFirst);
  return {
    get: sql.get(`SELECT ${purchase.list} FROM purchase WHERE purchase_id = $1`),
    after: (filter, purchaseId, limit) =>
      (hasFew(filter) ? exportFew : exportAll)(...exportParameters(filter), purchaseId, limit),
    list: (filter, page) =>
      filter.search === undefined
        ? statementsFor(filter).list(...filterParameters(filter, page.cursor), page.limit, page.offset)
        : search.list(filter, filter.search, page),
    count: (filter) =>
      filter.search === undefined
        ? countFor(filter)(...filterParameters(filter))
        : search.count(filter, filter.search),
  };
}

/** The same parameters, limit and offset, then those of the search. */
function searchReads(sql: SqliteSql): {
  list: (filter: PurchaseFilter, search: Search, page: Page) => PurchaseWithLicense[];
  count: (filter: PurchaseFilter, search: Search) => number;
} {
  const ofFilter = `($1 IS NULL OR purchase.license_key = $1) AND ($2 IS NULL OR ${byBuyer}) AND ${others}`;
  const page = 'ORDER BY purchase.created_at DESC, purchase.purchase_id DESC LIMIT $10 OFFSET $11';
  const ofFew = `FROM candidate CROSS JOIN license ON license.license_key = found_key CROSS JOIN purchase ${onKey}`;
  const prepared = (keys: Search['keys']) => {
    const where = `WHERE ${isLicenseFound(12, keys)} AND ${ofFilter}`;
    const ofLicenses = (licenses: string) => ({
      list: sql.all(`${licenses} ${select} ${ofFew} ${where} AND ${inDate} ${page}`, purchaseFrom),
      count: sql.count(`${licenses} SELECT count(*) AS count ${ofFew} ${where} AND ${inDate}`),
    });
    return {
      indexed: ofLicenses(candidates(13)),
      few: ofLicenses(candidatesAmongAll(12, keys)),
      many: {
        list: sql.all(
          `${select} FROM purchase CROSS JOIN license ${onKey} ${where} AND ${byDate} ${page}`,
          purchaseFrom,
        ),
        count: () => maxFound + 1,
      },
    };
  };
  const statements = { anywhere: prepared('anywhere'), shown: prepared('shown') };
  const [hasMany, findsMany] = [hasManyIn(sql), findsManyIn(sql)];
  const statementsFor = (search: Search) => {
    const { indexed, few, many } = statements[search.keys];
    if (!hasMany(search)) return indexed;
    // After an import the candidates are many until they are in the index.
    return findsMany(search) ? many : few;
  };
  return {
    list(filter, search, { limit, offset, cursor }) {
      const values = [...filterParameters(filter, cursor), limit, offset, ...searchParameters(search)];
      return statementsFor(search).list(...values);
    },
    count: (filter, search) =>
      statementsFor(search).count(...filterParameters(filter), 0, 0, ...searchParameters(search)),
  };
}

/** Whether a filter does not restrict the product. */
function isOfEveryProduct({ productKey, tenant }: PurchaseFilter): boolean {
  return productKey === undefined && (tenant?.accountId ?? tenant?.productKey ?? null) === null;
}

function filterParameters(filter: PurchaseFilter, cursor?: PageKey): SqlValue[] {
  const { licenseKey, buyerEmail, productKey, refunded, since, until, tenant } = filter;
  const end = until === undefined ? Number.MAX_SAFE_INTEGER : until + 1;
  const [endAt, endId] = beforeInstant(cursor, end);
  return [
    licenseKey ?? null,
    buyerEmail ?? null,
    productKey ?? null,
    refunded ?? null,
    since ?? Number.MIN_SAFE_INTEGER,
    endAt,
    tenant?.accountId ?? null,
    tenant?.productKey ?? null,
    endId,
  ];
}

export function purchaseTable(sql: SqliteSql): PurchaseTable {
  return { ...purchaseReads(sql), ...purchaseWrites(sql) };
}

/**
 * The key below which a page starts, in a list sorted by instant and id, the latest first. The filter and the cursor make
 * a single bound, because SQLite searches an index by one bound only. `before`: the first instant that is not listed.
 */
function beforeInstant(cursor: PageKey | undefined, before: number): [at: number, id: string] {
  const [at, id] = (cursor ?? [before, '']) as [number, string];
  return at < before ? [at, id] : [before, ''];
}
