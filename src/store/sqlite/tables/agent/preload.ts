import type { DatabaseSync } from 'node:sqlite';
import type { PreloadKey, PreloadProgress } from '../../../../domain/agent/preload.ts';
import type { PreloadReads, PreloadTable } from '../../../../service/agent/tables.ts';
import { bit, prepareChange, prepareQuery } from '../../statements.ts';

export function preloadReads(database: DatabaseSync): PreloadReads {
  const left = prepareQuery(
    database,
    `SELECT license_key AS licenseKey, product_key AS productKey FROM preload
     WHERE is_found IS NULL ORDER BY postponed, id LIMIT ?`,
    (row: PreloadKey): PreloadKey => ({ ...row }),
  );
  const progress = prepareQuery(
    database,
    'SELECT done, failed, left FROM preload_count',
    (row: PreloadProgress): PreloadProgress => ({ ...row }),
  );
  return {
    left: (limit) => left.all(limit),
    progress: () => progress.first() ?? { done: 0, failed: 0, left: 0 },
  };
}

export function preloadTable(database: DatabaseSync): PreloadTable {
  const add = prepareChange(
    database,
    `INSERT INTO preload (license_key, product_key) VALUES (:licenseKey, :productKey)
     ON CONFLICT (license_key) DO UPDATE SET product_key = excluded.product_key, is_found = NULL, postponed = 0`,
  );
  const finish = prepareChange(
    database,
    'UPDATE preload SET is_found = :isFound WHERE license_key = :licenseKey AND is_found IS NULL',
  );
  const postpone = prepareChange(
    database,
    'UPDATE preload SET postponed = postponed + 1 WHERE license_key = :licenseKey AND is_found IS NULL',
  );
  // Without a condition and triggers, SQLite clears a table of any size at once.
  const clear = prepareChange(database, 'DELETE FROM preload');
  const resetCounts = prepareChange(database, 'UPDATE preload_count SET done = 0, failed = 0, left = 0');
  return {
    ...preloadReads(database),
    add: ({ licenseKey, productKey }) => void add({ licenseKey, productKey }),
    finish: (licenseKey, isFound) => void finish({ licenseKey, isFound: bit(isFound) }),
    postpone: (licenseKey) => void postpone({ licenseKey }),
    clear() {
      clear({});
      resetCounts({});
    },
  };
}
