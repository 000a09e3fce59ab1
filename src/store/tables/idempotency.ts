import type { DatabaseSync } from 'node:sqlite';
import type { IdempotencyReads, StoredAnswer, IdempotencyTable } from '../../service/tables.ts';
import { prepareChange, prepareQuery } from './statements.ts';

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
  return { get: (credential, key) => get.first(credential, key) };
}

/** Prepares the table of stored answers. */
export function idempotencyTable(database: DatabaseSync): IdempotencyTable {
  const put = prepareChange(
    database,
    `INSERT OR REPLACE INTO idempotency (credential, key, fingerprint, value, at)
     VALUES (:credential, :key, :fingerprint, :value, :at)`,
  );
  const prune = prepareChange(database, 'DELETE FROM idempotency WHERE at < :before');
  return {
    ...idempotencyReads(database),
    put(credential, key, { fingerprint, value, at }) {
      put({ credential, key, fingerprint, value: JSON.stringify(value), at });
    },
    prune(before) {
      prune({ before });
    },
  };
}
