import type { DatabaseSync } from 'node:sqlite';
import type { IdempotencyReads, StoredAnswer, IdempotencyTable } from '../../../../service/access/tables.ts';
import { bit, prepareChange, prepareCount, prepareQuery } from '../../statements.ts';

/** Prepares the reads of stored answers. Their values are JSON. */
export function idempotencyReads(database: DatabaseSync): IdempotencyReads {
  const get = prepareQuery(
    database,
    'SELECT fingerprint, value FROM idempotency WHERE credential = ? AND key = ?',
    (row: { fingerprint: string; value: string }): StoredAnswer => ({
      fingerprint: row.fingerprint,
      value: JSON.parse(row.value),
    }),
  );
  const unchanged = prepareCount(database, 'SELECT count(*) AS count FROM idempotency WHERE unchanged = 1');
  return { get: (credential, key) => get.first(credential, key), unchangedCount: () => unchanged() };
}

/** Prepares the table of stored answers. */
export function idempotencyTable(database: DatabaseSync): IdempotencyTable {
  const put = prepareChange(
    database,
    `INSERT OR REPLACE INTO idempotency (credential, key, fingerprint, value, at, unchanged)
     VALUES (:credential, :key, :fingerprint, :value, :at, :unchanged)`,
  );
  const remove = prepareChange(
    database,
    'DELETE FROM idempotency WHERE credential = :credential AND key = :key',
  );
  const prune = prepareChange(
    database,
    `DELETE FROM idempotency WHERE (credential, key) IN
       (SELECT credential, key FROM idempotency WHERE at < :before ORDER BY at LIMIT :limit)`,
  );
  return {
    ...idempotencyReads(database),
    put(credential, key, { fingerprint, value, at, unchanged }) {
      put({ credential, key, fingerprint, value: JSON.stringify(value), at, unchanged: bit(unchanged) });
    },
    remove(credential, key) {
      remove({ credential, key });
    },
    prune: (before, limit) => prune({ before, limit }).changes,
  };
}
