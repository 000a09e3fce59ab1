import type { ActivationAttempt } from '../../../domain/agent/activated-key.ts';
import type { AttemptReads, AttemptTable } from '../../../service/agent/tables.ts';
import { columns } from '../../sql.ts';
import type { SqliteSql } from '../statements.ts';

const attempt = columns<ActivationAttempt>('license_key, name, attempt_id AS id, sent_at, activation_id');

export function attemptReads(sql: SqliteSql): AttemptReads {
  return {
    get: sql.get(
      `SELECT ${attempt.list} FROM activation_attempt WHERE license_key = $1 AND name = $2`,
      attempt.from,
    ),
  };
}

export function attemptTable(sql: SqliteSql): AttemptTable {
  const put = sql.run(attempt.upsert('activation_attempt', ['license_key', 'name']));
  return {
    ...attemptReads(sql),
    put: (made) => put(...attempt.values(made)),
    remove: sql.run('DELETE FROM activation_attempt WHERE license_key = $1 AND name = $2'),
    keepLatest: sql.run(
      `DELETE FROM activation_attempt WHERE sent_at < coalesce((SELECT sent_at FROM activation_attempt
         ORDER BY sent_at DESC LIMIT 1 OFFSET $1 - 1), 0)`,
    ),
    prune: sql.changes(`DELETE FROM activation_attempt WHERE (license_key, name) IN
       (SELECT license_key, name FROM activation_attempt WHERE sent_at < $1 LIMIT $2)`),
  };
}
