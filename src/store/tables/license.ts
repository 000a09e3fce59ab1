import type { License } from '../../domain/license.ts';
import type { ListedChange } from '../../service/tables.ts';
import { columns } from '../sql.ts';

/* What the engines share about licenses. Each has its own statements. */

/** Of the table with the alias `license`. */
export const license = columns<License>(
  'license_key, product_key, buyer_email, uses, enabled BOOL, created_at, revision',
  'license',
);

// A key is sold once.
const sale = (column: string): string =>
  `(SELECT max(sale.${column}) FROM latchkey.purchase AS sale WHERE sale.license_key = license.license_key)`;

/** The columns of a `SoldLicense`. */
export const soldColumns: string = `${license.list}, ${sale('purchase_id')} AS "purchaseId",
  ${sale('refunded_at')} AS "refundedAt"`;

type HistoryRow = Pick<ListedChange, 'licenseKey' | 'number' | 'at' | 'change' | 'credential'> & {
  usesBefore: number;
  enabledBefore: boolean;
  usesAfter: number;
  enabledAfter: boolean;
};

export const history = columns<HistoryRow>(`license_key, number, at, change, credential, uses_before,
  enabled_before BOOL, uses_after, enabled_after BOOL`);

export function changeFrom(row: never): ListedChange {
  const { usesBefore, enabledBefore, usesAfter, enabledAfter, ...same } = history.from(row);
  return {
    ...same,
    before: { uses: usesBefore, enabled: enabledBefore },
    after: { uses: usesAfter, enabled: enabledAfter },
  };
}
