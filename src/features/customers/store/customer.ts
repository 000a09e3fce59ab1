import { storedResponseOf, type StoredRow } from '../../../store/tables/access.ts';
import type { FeatureTables } from '../../../store/feature-tables.ts';
import type { Engine, On, WritingSql } from '../../../store/sql.ts';
import type { CustomerTable, FoundResponse } from '../service/tables.ts';

/** The buyers of licenses, in tables of the core. */
function customerTable<E extends Engine>(sql: WritingSql<E>): On<E, CustomerTable> {
  const { dialect, engine } = sql;
  const replace = [
    'UPDATE latchkey.purchase SET license_key = $2 WHERE license_key = $1',
    'UPDATE latchkey.license_history SET license_key = $2 WHERE license_key = $1',
    // On PostgreSQL, the license has the number of the last entry of its history.
    ...(engine === 'sqlite'
      ? []
      : [
          `UPDATE latchkey.license AS each SET changes = CASE each.license_key WHEN $1 THEN 0 ELSE old.changes END
             FROM latchkey.license AS old WHERE old.license_key = $1 AND each.license_key IN ($1, $2)`,
        ]),
    `UPDATE latchkey.license SET enabled = false, replaced_by = $2, revision = revision + 1,
       disabled_revision = revision + 1 WHERE license_key = $1`,
  ].map((text) => sql.run(text));
  const setBuyer = sql.run(`UPDATE latchkey.license SET buyer_email = $2, revision = revision + 1
    WHERE ${dialect.isIn('license_key', '$1')}`);
  const reindexed = engine === 'sqlite' ? reindexing(sql) : withoutIndex;
  return {
    replaceKey(from: string, to: string) {
      for (const run of replace) run(from, to);
    },
    setBuyer(licenseKeys: readonly string[], buyerEmail: string) {
      reindexed(licenseKeys, () => setBuyer(licenseKeys, buyerEmail));
    },
    licensesOf: sql.all(`SELECT license_key AS "licenseKey", buyer_email AS "buyerEmail" FROM latchkey.license
      WHERE lower(buyer_email) = $1 AND ($2::text IS NULL OR EXISTS (
        SELECT 1 FROM latchkey.product AS sold WHERE sold.product_key = license.product_key AND sold.account_id = $2))
      ORDER BY license_key ${dialect.forUpdate}`),
    responsesAfter: sql.all(
      `SELECT credential, key, fingerprint, value, kept_until AS until FROM latchkey.idempotency
       WHERE (credential, key) > ($1, $2) AND value IS NOT NULL ORDER BY credential, key LIMIT $3`,
      responseFrom,
    ),
  };
}

function responseFrom(raw: never): FoundResponse {
  const row = raw as StoredRow & FoundResponse;
  return { ...row, value: storedResponseOf(row)?.value };
}

type Reindexed = (licenseKeys: readonly string[], change: () => void) => void;

const withoutIndex: Reindexed = (_, change) => change();

/**
 * Removes licenses from the index of the search before a change, and adds them at its end after it. The index has no copy
 * of its texts: a statement that removes a text must name the text.
 */
function reindexing<E extends Engine>(sql: WritingSql<E>): Reindexed {
  const last = sql.value<number>('SELECT max(number) FROM license_number');
  const among = sql.dialect.isIn('license_number.license_key', '$1');
  const remove = sql.run(`INSERT INTO license_search (license_search, rowid, text)
    SELECT 'delete', number, license_number.license_key || ' ' || buyer_email
    FROM license_number CROSS JOIN license ON license.license_key = license_number.license_key
    WHERE ${among} AND number <= (SELECT number FROM license_search_end)`);
  const add = sql.run(
    `INSERT INTO license_number (license_key) SELECT value FROM ${sql.dialect.items('$1')}`,
  );
  // The number of the last license must not be given to another one: it may be in the index.
  const removeNumbers = sql.run(`DELETE FROM license_number WHERE ${among} AND number <= $2`);
  return (licenseKeys, change) => {
    const end = last() as number | null;
    remove(licenseKeys);
    change();
    add(licenseKeys);
    removeNumbers(licenseKeys, end);
  };
}

export const tables: FeatureTables = {
  reads: () => ({ customers: {} }),
  tables: (sql) => ({ customers: customerTable(sql) }),
  effects: {
    customers: {
      replaceKey: (licenseKey) => ({ licenseKey }),
      setBuyer: ([licenseKey, ...others]) =>
        licenseKey === undefined || others.length > 0 ? 'anything' : { licenseKey },
      licensesOf: () => null,
      responsesAfter: () => null,
    },
  },
};
