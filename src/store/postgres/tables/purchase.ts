import type { License } from '../../../domain/license.ts';
import type { Purchase, PurchaseWithLicense } from '../../../domain/catalogue.ts';
import type {
  PurchaseFilter,
  PurchaseReads,
  PurchaseTable,
  AwaitableTable,
} from '../../../service/tables.ts';
import type { Names } from '../names.ts';
import type { Condition, Prepare, WritingPrepare } from '../statements.ts';
import { exported, licenseColumns, ofBuyer } from './license.ts';

type Row = Omit<License, 'createdAt'> & Omit<Purchase, 'licenseKey'> & { soldAt: number } & License;

function fromRow({ purchaseId, soldAt, refundedAt, ...license }: Row): PurchaseWithLicense {
  return { purchase: { purchaseId, licenseKey: license.licenseKey, createdAt: soldAt, refundedAt }, license };
}

function conditionsOf(names: Names, filter: PurchaseFilter): Condition[] {
  const { license, purchase } = names;
  return [
    [(place) => `${license}.license_key = ${place}`, filter.licenseKey],
    ofBuyer(names, filter.buyerEmail),
    [(place) => `${purchase}.created_at >= ${place}`, filter.since],
    [(place) => `${purchase}.created_at <= ${place}`, filter.until],
    [(place) => `(${purchase}.refunded_at IS NOT NULL) = ${place}`, filter.refunded],
    ...exported(names, filter),
  ];
}

export function purchaseReads(prepare: Prepare): AwaitableTable<PurchaseReads> {
  const { names } = prepare;
  const { license, purchase } = names;
  const columns = `${purchase}.purchase_id AS "purchaseId", ${purchase}.created_at AS "soldAt",
    ${purchase}.refunded_at AS "refundedAt", ${licenseColumns(names)}`;
  const joined = `${purchase} JOIN ${license} ON ${license}.license_key = ${purchase}.license_key`;
  const id = `${purchase}.purchase_id`;
  const list = { select: columns, from: joined, isLatestFirst: true };
  const listed = prepare.list({ ...list, key: [`${purchase}.created_at`, id] }, fromRow);
  // A key has few purchases. Without this, the planner would scan all purchases by date because of ORDER BY.
  const ofKey = prepare.list({ ...list, key: [`${purchase}.created_at + 0`, id] }, fromRow);
  const all = prepare.list({ select: columns, from: joined, key: [id] }, fromRow);
  const listFor = ({ licenseKey }: PurchaseFilter): typeof listed =>
    licenseKey === undefined ? listed : ofKey;
  return {
    get: prepare.query<Purchase>(
      `SELECT purchase_id AS "purchaseId", license_key AS "licenseKey", created_at AS "createdAt",
       refunded_at AS "refundedAt" FROM ${purchase} WHERE purchase_id = $1`,
    ).first,
    after: (filter, purchaseId, limit) =>
      all.list(exported(names, filter), { limit, offset: 0, cursor: [purchaseId] }),
    list: (filter, page) => listFor(filter).list(conditionsOf(names, filter), page),
    count: (filter) => listed.count(conditionsOf(names, filter)),
  };
}

export function purchaseTable(prepare: WritingPrepare): AwaitableTable<PurchaseTable> {
  const { purchase } = prepare.names;
  const add = prepare.write(
    `INSERT INTO ${purchase} (purchase_id, license_key, created_at, refunded_at) VALUES ($1, $2, $3, $4)`,
  );
  const setRefunded = prepare.write(`UPDATE ${purchase} SET refunded_at = $2 WHERE purchase_id = $1`);
  return {
    ...purchaseReads(prepare),
    add: ({ purchaseId, licenseKey, createdAt, refundedAt }) =>
      add(purchaseId, licenseKey, createdAt, refundedAt),
    setRefunded: ({ purchaseId, refundedAt }) => setRefunded(purchaseId, refundedAt),
  };
}
