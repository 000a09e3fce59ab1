import type { DatabaseSync } from 'node:sqlite';
import type {
  IdempotencyReads,
  StoredResponse,
  IdempotencyTable,
} from '../../../../service/access/tables.ts';
import { bit, prepareChange, prepareCount, prepareQuery } from '../../statements.ts';

export function idempotencyReads(database: DatabaseSync): IdempotencyReads {
  const get = prepareQuery(
    database,
    'SELECT fingerprint, value FROM idempotency WHERE credential = ? AND key = ?',
    (row: { fingerprint: string; value: string }): StoredResponse => ({
      fingerprint: row.fingerprint,
      value: JSON.parse(row.value),
    }),
  );
  const unchanged = prepareCount(
    database,
    'SELECT count(*) AS count FROM idempotency WHERE credential = ? AND unchanged = 1',
  );
  return {
    get: (credential, key) => get.first(credential, key),
    unchangedCount: (credential) => unchanged(credential),
  };
}

export function idempotencyTable(database: DatabaseSync): IdempotencyTable {
  const put = prepareChange(
    database,
    `INSERT OR REPLACE INTO idempotency (credential, key, fingerprint, value, at, unchanged)
     VALUES (:credential, :key, :fingerprint, :value, :at, :unchanged)`,
  );
  const replace = prepareChange(
    database,
    `INSERT INTO idempotency (credential, key, fingerprint, value, at)
     VALUES (:credential, :key, :fingerprint, :value, :at)
     ON CONFLICT DO UPDATE SET fingerprint = excluded.fingerprint, value = excluded.value, at = excluded.at`,
  );
  const remove = prepareChange(
    database,
    'DELETE FROM idempotency WHERE credential = :credential AND key = :key',
  );
  const clampToNow = prepareChange(
    database,
    `UPDATE idempotency SET at = :now WHERE (credential, key) IN
       (SELECT credential, key FROM idempotency WHERE at > :now LIMIT :limit)`,
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
    replace(credential, key, { fingerprint, value, at }) {
      replace({ credential, key, fingerprint, value: JSON.stringify(value), at });
    },
    remove(credential, key) {
      remove({ credential, key });
    },
    clampToNow: (now, limit) => clampToNow({ now, limit }).changes,
    prune: (before, limit) => prune({ before, limit }).changes,
  };
}
