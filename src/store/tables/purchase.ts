import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { License } from '../../domain/license.ts';
import type { Purchase, PurchaseWithLicense } from '../../domain/purchase.ts';
import type { PurchaseFilter, PurchaseReads, PurchaseTable } from '../../service/authority/tables.ts';
import { exported, exportParameters } from './license.ts';
import { bit, type Bit, prepareChange, prepareCount, prepareQuery } from './statements.ts';

const columns = `purchase.purchase_id AS purchaseId, purchase.license_key AS licenseKey,
  purchase.created_at AS createdAt, purchase.refunded_at AS refundedAt`;

type Row = Purchase & Omit<License, 'enabled' | 'createdAt'> & { enabled: Bit; licensedAt: number };

const joined = 'FROM purchase JOIN license ON license.license_key = purchase.license_key';
const select = `SELECT ${columns}, product_key AS productKey, buyer_email AS buyerEmail, uses, enabled,
  license.created_at AS licensedAt ${joined}`;

function fromRow(row: Row): PurchaseWithLicense {
  const { purchaseId, licenseKey, createdAt, refundedAt, productKey, buyerEmail, uses } = row;
  return {
    purchase: { purchaseId, licenseKey, createdAt, refundedAt },
    license: {
      licenseKey,
      productKey,
      buyerEmail,
      uses,
      enabled: row.enabled === 1,
      createdAt: row.licensedAt,
    },
  };
}

/*
 * The parameters are always key, buyer, product, refunded, since, until, and the account and product of the reach.
 * Which of them leads is spelled out, because a condition with IS NULL can use no index.
 */
const others = `(?3 IS NULL OR product_key = ?3) AND (?4 IS NULL OR (refunded_at IS NOT NULL) = ?4)
  AND (?7 IS NULL OR EXISTS (SELECT 1 FROM product WHERE product.product_key = license.product_key
    AND product.account_id = ?7)) AND (?8 IS NULL OR product_key = ?8)`;
const byDate = 'purchase.created_at BETWEEN ?5 AND ?6';
const byBuyer = 'lower(buyer_email) = lower(?2)';
const conditions = {
  byKey: `purchase.license_key = ?1 AND (?2 IS NULL OR ${byBuyer}) AND +${byDate} AND ${others}`,
  byBuyer: `${byBuyer} AND ?1 IS NULL AND +${byDate} AND ${others}`,
  any: `${byDate} AND ?1 IS NULL AND ?2 IS NULL AND ${others}`,
};

/** Prepares the reads of purchases. */
export function purchaseReads(database: DatabaseSync): PurchaseReads {
  const get = prepareQuery(
    database,
    `SELECT ${columns} FROM purchase WHERE purchase_id = ?`,
    (row: Purchase): Purchase => ({ ...row }),
  );
  const prepareFiltered = (condition: string) => ({
    list: prepareQuery(
      database,
      `${select} WHERE ${condition}
       ORDER BY purchase.created_at DESC, purchase.purchase_id DESC LIMIT ?9 OFFSET ?10`,
      fromRow,
    ),
    count: prepareCount(database, `SELECT count(*) AS count ${joined} WHERE ${condition}`),
  });
  const ofKey = prepareFiltered(conditions.byKey);
  const ofBuyer = prepareFiltered(conditions.byBuyer);
  const any = prepareFiltered(conditions.any);
  const statementsFor = ({ licenseKey, buyerEmail }: PurchaseFilter) => {
    if (licenseKey !== undefined) return ofKey;
    return buyerEmail === undefined ? any : ofBuyer;
  };
  const after = prepareQuery(
    database,
    `${select} WHERE purchase.purchase_id > ?4 AND ${exported} ORDER BY purchase.purchase_id LIMIT ?5`,
    fromRow,
  );
  return {
    get: (purchaseId) => get.first(purchaseId),
    after: (filter, purchaseId, limit) => after.all(...exportParameters(filter), purchaseId, limit),
    list: (filter, { limit, offset }) =>
      statementsFor(filter).list.all(...filterParameters(filter), limit, offset),
    count: (filter) => statementsFor(filter).count(...filterParameters(filter)),
  };
}

function filterParameters(filter: PurchaseFilter): SQLInputValue[] {
  const { licenseKey, buyerEmail, productKey, refunded, since, until, reach } = filter;
  return [
    licenseKey ?? null,
    buyerEmail ?? null,
    productKey ?? null,
    refunded === undefined ? null : bit(refunded),
    since ?? Number.MIN_SAFE_INTEGER,
    until ?? Number.MAX_SAFE_INTEGER,
    reach?.accountId ?? null,
    reach?.productKey ?? null,
  ];
}

/** Prepares the table of purchases. */
export function purchaseTable(database: DatabaseSync): PurchaseTable {
  const put = prepareChange(
    database,
    `INSERT INTO purchase (purchase_id, license_key, created_at, refunded_at)
     VALUES (:purchaseId, :licenseKey, :createdAt, :refundedAt)
     ON CONFLICT (purchase_id) DO UPDATE SET refunded_at = excluded.refunded_at`,
  );
  return {
    ...purchaseReads(database),
    put({ purchaseId, licenseKey, createdAt, refundedAt }) {
      put({ purchaseId, licenseKey, createdAt, refundedAt });
    },
  };
}
