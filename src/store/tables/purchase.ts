import type { Purchase, PurchaseWithLicense } from '../../domain/catalogue.ts';
import type { License } from '../../domain/license.ts';
import type { PurchaseTable } from '../../service/tables.ts';
import { columns, type Engine, type On, type WritingSql } from '../sql.ts';
import { license } from './license.ts';

/* What the engines share about purchases. Each has its own lists. */

/** Of the table with the alias `purchase`. */
export const purchase = columns<Purchase>('purchase_id, license_key, created_at, refunded_at', 'purchase');

/** The columns for `purchaseFrom`. */
export const purchaseAndLicense: string = `${license.list}, purchase.purchase_id AS "purchaseId",
  purchase.created_at AS "soldAt", purchase.refunded_at AS "refundedAt"`;

type Row = Required<Omit<License, 'extra'>> & Omit<Purchase, 'createdAt'> & { soldAt: number };

export function purchaseFrom(raw: never): PurchaseWithLicense {
  const row = license.from(raw) as Row;
  const { licenseKey, productKey, buyerEmail, uses, enabled, createdAt, revision } = row;
  return {
    purchase: { purchaseId: row.purchaseId, licenseKey, createdAt: row.soldAt, refundedAt: row.refundedAt },
    license: { licenseKey, productKey, buyerEmail, uses, enabled, createdAt, revision },
  };
}

export function purchaseWrites<E extends Engine>(
  sql: WritingSql<E>,
): On<E, Pick<PurchaseTable, 'add' | 'setRefunded'>> {
  const add = sql.run(purchase.insert('purchase'));
  const setRefunded = sql.run('UPDATE latchkey.purchase SET refunded_at = $2 WHERE purchase_id = $1');
  return {
    add: (added) => add(...purchase.values(added)),
    setRefunded: ({ purchaseId, refundedAt }) => setRefunded(purchaseId, refundedAt),
  };
}
