import { changesKept } from '../../../domain/history.ts';
import { countAfter, licenseTransitions, type License } from '../../../domain/license.ts';
import type { LicenseChange } from '../../../service/authority/tables.ts';
import type { Idempotency } from '../../../service/ports.ts';
import { keyLock } from '../locks.ts';
import type { Names } from '../names.ts';
import { statementOf, type Row, type SqlValue, type Statement } from '../statements.ts';

/** A license before and after a change. */
export type ChangedLicense = { before: License; after: License };

const columns = `ordinal, license_key AS "licenseKey", product_key AS "productKey", buyer_email AS "buyerEmail", uses,
  enabled, created_at AS "createdAt", uses_before AS "usesBefore", enabled_before AS "enabledBefore"`;

/** A change, and the idempotency key that it is asked for under, if any. */
type KeyedChange = { change: LicenseChange; idempotency: Idempotency | null };

/** Makes the statement that changes licenses one after the other, and keeps their history; a transaction of its own. */
export function changeStatement(names: Names): Statement {
  return statementOf(`SELECT ${columns} FROM ${names.of('change_licenses')}($1, $2, ${changesKept})`);
}

/**
 * Makes the statement that takes the idempotency keys of changes, as far as they are free and nothing was answered under
 * them, and makes these changes and those without a key.
 */
export function keyedChangeStatement(names: Names): Statement {
  const { idempotency } = names;
  return statementOf(
    `SELECT ${columns} FROM ${names.of('change_licenses')}((
       SELECT coalesce(json_agg(change), '[]')
       FROM ROWS FROM (json_array_elements($1), unnest($2::text[]), unnest($3::text[]))
         AS asked (change, by_credential, under_key)
       WHERE under_key IS NULL OR pg_try_advisory_xact_lock(${keyLock(names, 'by_credential', 'under_key')})
         AND (SELECT at FROM ${idempotency} WHERE credential = by_credential AND key = under_key) IS NULL
     ), true, ${changesKept})`,
  );
}

/** The values of that statement. */
export function keyedChangesAsked(asked: readonly KeyedChange[]): SqlValue[] {
  return [
    JSON.stringify(asked.map(({ change }, ordinal) => changeAsked(change, ordinal))),
    asked.map(({ idempotency }) => idempotency?.credential ?? null),
    asked.map(({ idempotency }) => idempotency?.key ?? null),
  ];
}

/**
 * The values of the statement. The domain's rule is in them. `skipsLocked`: a license that another transaction is
 * changing is left out, and otherwise waited for.
 */
export function changesAsked(changes: readonly LicenseChange[], skipsLocked: boolean): SqlValue[] {
  return [JSON.stringify(changes.map(changeAsked)), skipsLocked];
}

function changeAsked({ reach, licenseKey, trigger, remembered }: LicenseChange, ordinal: number): object {
  return {
    ordinal,
    key: licenseKey,
    account: reach.accountId,
    product: reach.productKey,
    stepAtZero: countAfter(0, trigger),
    step: countAfter(1, trigger) - 1,
    ifEnabled: licenseTransitions.enabled[trigger] === 'enabled',
    ifDisabled: licenseTransitions.disabled[trigger] === 'enabled',
    at: remembered?.at ?? null,
    change: trigger,
    credential: remembered?.credential ?? null,
  };
}

type ChangedRow = License & { ordinal: number; usesBefore: number; enabledBefore: boolean };

/** What became of each change; null: the credential reaches no such license, or it was left out. */
export function changesMade(count: number, rows: readonly Row[]): (ChangedLicense | null)[] {
  const made = Array.from({ length: count }, (): ChangedLicense | null => null);
  for (const row of rows) {
    const { ordinal, usesBefore, enabledBefore, ...after } = row as ChangedRow;
    made[ordinal] = { before: { ...after, uses: usesBefore, enabled: enabledBefore }, after };
  }
  return made;
}
