import type { DatabaseSync } from 'node:sqlite';
import type { Purchase } from '../../domain/purchase.ts';
import type { PurchaseReads, PurchaseTable } from '../../service/tables.ts';
import { prepareChange, prepareQuery } from './statements.ts';

/** Prepares the reads of purchases. */
export function purchaseReads(database: DatabaseSync): PurchaseReads {
  const get = prepareQuery(
    database,
    `SELECT purchase_id AS purchaseId, license_key AS licenseKey, created_at AS createdAt,
       refunded_at AS refundedAt FROM purchase WHERE purchase_id = ?`,
    (row: Purchase): Purchase => ({ ...row }),
  );
  return { get: (purchaseId) => get.first(purchaseId) };
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
