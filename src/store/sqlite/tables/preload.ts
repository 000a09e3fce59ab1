import type { PreloadKey, PreloadProgress } from '../../../domain/agent/preload.ts';
import type { PreloadReads, PreloadTable } from '../../../service/agent/tables.ts';
import type { SqliteSql } from '../statements.ts';

export function preloadReads(sql: SqliteSql): PreloadReads {
  const progress = sql.get<PreloadProgress>('SELECT done, failed, left FROM preload_count');
  return {
    left: sql.all<PreloadKey>(
      `SELECT license_key AS "licenseKey", product_key AS "productId" FROM preload
       WHERE is_found IS NULL ORDER BY postponed, id LIMIT $1`,
    ),
    progress: () => progress() ?? { done: 0, failed: 0, left: 0 },
  };
}

export function preloadTable(sql: SqliteSql): PreloadTable {
  const add = sql.run(`INSERT INTO preload (license_key, product_key) VALUES ($1, $2)
     ON CONFLICT (license_key) DO UPDATE SET product_key = excluded.product_key, is_found = NULL, postponed = 0`);
  // Without a condition and triggers, SQLite clears a table of any size at once.
  const clear = sql.run('DELETE FROM preload');
  const resetCounts = sql.run('UPDATE preload_count SET done = 0, failed = 0, left = 0');
  return {
    ...preloadReads(sql),
    add: ({ licenseKey, productId }) => add(licenseKey, productId),
    finish: sql.run('UPDATE preload SET is_found = $2 WHERE license_key = $1 AND is_found IS NULL'),
    postpone: sql.run(
      'UPDATE preload SET postponed = postponed + 1 WHERE license_key = $1 AND is_found IS NULL',
    ),
    clear() {
      clear();
      resetCounts();
    },
  };
}
