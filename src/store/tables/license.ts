import type { License, LicenseState } from '../../domain/license.ts';
import type { ListedChange } from '../../service/tables.ts';
import { columns, type SqlValue } from '../sql.ts';
import { termColumns, withTermsIn, type StoredTerms } from './terms.ts';

/* What the engines share about licenses. Each has its own statements. */

type StoredLicense = Pick<
  License,
  'licenseKey' | 'productKey' | 'buyerEmail' | 'uses' | 'enabled' | 'createdAt'
> &
  StoredTerms & { replacedBy: string | null; revision: number };

/** Of the table with the alias `license`. */
const licenseColumns = columns<StoredLicense>(
  `license_key, product_key, buyer_email, uses, enabled BOOL, created_at, ${termColumns}, replaced_by, revision`,
  'license',
);

/** The names of the columns, and the license in a row of them; further columns stay. */
export const license = {
  list: licenseColumns.list,
  from: (row: never): License => {
    const { replacedBy, ...same } = withTermsIn(licenseColumns.from(row));
    // Some statements do not read it.
    return { ...same, ...(typeof replacedBy === 'string' && { replacedBy }) };
  },
};

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
  expiresBefore: number | null;
  expiresAfter: number | null;
};

export const history = columns<HistoryRow>(`license_key, number, at, change, credential, uses_before,
  enabled_before BOOL, uses_after, enabled_after BOOL, expires_before, expires_after`);

/** The columns after `credential`. */
export function stateValues(before: LicenseState, after: LicenseState): SqlValue[] {
  const ends = [before.expiresAt ?? null, after.expiresAt ?? null];
  return [before.uses, before.enabled, after.uses, after.enabled, ...ends];
}

export function changeFrom(row: never): ListedChange {
  const { usesBefore, enabledBefore, usesAfter, enabledAfter, expiresBefore, expiresAfter, ...same } =
    history.from(row);
  const isAboutTerms = same.change === 'renew' || same.change === 'update';
  return {
    ...same,
    before: { uses: usesBefore, enabled: enabledBefore, ...(isAboutTerms && { expiresAt: expiresBefore }) },
    after: { uses: usesAfter, enabled: enabledAfter, ...(isAboutTerms && { expiresAt: expiresAfter }) },
  };
}
