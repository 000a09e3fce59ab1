import type { License, SoldLicense } from '../../../domain/license.ts';
import type {
  ExportFilter,
  LicenseChange,
  LicenseFilter,
  LicenseReads,
  LicenseTable,
} from '../../../service/authority/tables.ts';
import type { AwaitableTable } from '../../../service/tables.ts';
import type { Names } from '../names.ts';
import {
  prepareList,
  prepareLookup,
  prepareQuery,
  prepareWrite,
  where,
  statementOf,
  type Condition,
  type Source,
  type WritingSource,
} from '../statements.ts';
import { changesAsked, changesMade, changeStatement } from './license-change.ts';
import { ofReach } from './reach.ts';

const fromRow = (row: License): License => row;

/** The columns of a license, qualified: they also stand in joins. */
export function licenseColumns({ license }: Pick<Names, 'license'>): string {
  return `${license}.license_key AS "licenseKey", ${license}.product_key AS "productKey",
    ${license}.buyer_email AS "buyerEmail", ${license}.uses, ${license}.enabled,
    ${license}.created_at AS "createdAt"`;
}

/** The license of a buyer, whatever the letter case. */
export function ofBuyer({ license }: Names, buyerEmail: string | undefined): Condition {
  return [(place) => `lower(${license}.buyer_email) = lower(${place}::text COLLATE "C")`, buyerEmail];
}

/** What an export is limited to. */
export function exported(names: Names, { productKey, reach }: ExportFilter): Condition[] {
  return [[(place) => `${names.license}.product_key = ${place}`, productKey], ...ofReach(names, reach)];
}

function conditionsOf(names: Names, filter: LicenseFilter): Condition[] {
  const { license } = names;
  return [
    [(place) => `${license}.license_key = ${place}`, filter.licenseKey],
    [(place) => `${license}.enabled = ${place}`, filter.enabled],
    ofBuyer(names, filter.buyerEmail),
    ...exported(names, filter),
  ];
}

/** Makes the reads of licenses. */
export function licenseReads(source: Source): AwaitableTable<LicenseReads> {
  const { names } = source;
  const { license, purchase } = names;
  const columns = licenseColumns(names);
  // A key is sold once.
  const sale = (column: string): string =>
    `(SELECT max(sale.${column}) FROM ${purchase} AS sale WHERE sale.license_key = ${license}.license_key)`;
  const sold = `${columns}, ${sale('purchase_id')} AS "purchaseId", ${sale('refunded_at')} AS "refundedAt"`;
  const text = `SELECT ${columns} FROM ${license} WHERE license_key = ANY ($1)`;
  const get = prepareLookup(source, text, { key: 'licenseKey', from: fromRow });
  const listed = prepareList(
    source,
    { select: sold, from: license, key: ['license_key'] },
    (row: SoldLicense) => row,
  );
  return {
    get,
    async after(filter, licenseKey, limit) {
      const { sql, values } = where(exported(names, filter), 2);
      const page = `SELECT ${columns} FROM ${license} WHERE license_key > $1 AND ${sql}
        ORDER BY license_key LIMIT $2::bigint`;
      const rows = await source.rows(statementOf(page), [licenseKey, limit, ...values]);
      return rows.map((row) => fromRow(row as never));
    },
    list: (filter, page) => listed.list(conditionsOf(names, filter), page),
    count: (filter) => listed.count(conditionsOf(names, filter)),
  };
}

/** Makes the table of licenses. */
export function licenseTable(source: WritingSource): AwaitableTable<LicenseTable> {
  const { names } = source;
  const { license } = names;
  const add = prepareQuery(
    source,
    `INSERT INTO ${license} (license_key, product_key, buyer_email, uses, enabled, created_at)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (license_key) DO NOTHING RETURNING 1`,
    () => true,
  );
  const setState = prepareWrite(
    source,
    `UPDATE ${license} SET uses = $2, enabled = $3 WHERE license_key = $1`,
  );
  const change = changeStatement(names);
  return {
    ...licenseReads(source),
    add: async ({ licenseKey, productKey, buyerEmail, uses, enabled, createdAt }) =>
      (await add.first(licenseKey, productKey, buyerEmail, uses, enabled, createdAt)) !== null,
    setState: ({ licenseKey, uses, enabled }) => setState(licenseKey, uses, enabled),
    async change(asked: LicenseChange) {
      const [made = null] = changesMade(1, await source.rows(change, changesAsked([asked], false)));
      return made;
    },
  };
}
