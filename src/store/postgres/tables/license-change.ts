import { changesKept } from '../../../domain/history.ts';
import { countAfter, licenseTransitions, type License } from '../../../domain/license.ts';
import type { LicenseChange } from '../../../service/authority/tables.ts';
import type { Names } from '../names.ts';
import { statementOf, type Row, type SqlValue, type Statement } from '../statements.ts';

/** A license before and after a change. */
export type ChangedLicense = { before: License; after: License };

/** Makes the statement that changes licenses one after the other, and keeps their history; a transaction of its own. */
export function changeStatement(names: Names): Statement {
  return statementOf(
    `SELECT place, license_key AS "licenseKey", product_key AS "productKey", buyer_email AS "buyerEmail", uses, enabled,
       created_at AS "createdAt", uses_before AS "usesBefore", enabled_before AS "enabledBefore"
     FROM ${names.of('change_licenses')}($1, $2, ${changesKept})`,
  );
}

/**
 * The values of the statement. The domain's rule is in them. `skipsLocked`: a license that another transaction is
 * changing is left out, and otherwise waited for.
 */
export function changesAsked(changes: readonly LicenseChange[], skipsLocked: boolean): SqlValue[] {
  return [JSON.stringify(changes.map(changeAsked)), skipsLocked];
}

function changeAsked({ reach, licenseKey, trigger, remembered }: LicenseChange, place: number): object {
  return {
    place,
    key: licenseKey,
    account: reach.accountId,
    product: reach.productKey,
    fromNone: countAfter(0, trigger),
    step: countAfter(1, trigger) - 1,
    fromEnabled: licenseTransitions.enabled[trigger] === 'enabled',
    fromDisabled: licenseTransitions.disabled[trigger] === 'enabled',
    at: remembered?.at ?? null,
    change: trigger,
    credential: remembered?.credential ?? null,
  };
}

type ChangedRow = License & { place: number; usesBefore: number; enabledBefore: boolean };

/** What became of each change; null: the credential reaches no such license, or it was left out. */
export function changesMade(count: number, rows: readonly Row[]): (ChangedLicense | null)[] {
  const made = Array.from({ length: count }, (): ChangedLicense | null => null);
  for (const row of rows) {
    const { place, usesBefore, enabledBefore, ...after } = row as ChangedRow;
    made[place] = { before: { ...after, uses: usesBefore, enabled: enabledBefore }, after };
  }
  return made;
}
