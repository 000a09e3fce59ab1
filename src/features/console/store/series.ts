import type { SeriesRow, StepCount } from '../domain/series.ts';
import type { SeriesReads, SeriesTable } from '../service/tables.ts';
import { columns, type Engine, type On, type Sql, type WritingSql } from '../../../store/sql.ts';
import type { FeatureTables } from '../../../store/feature-tables.ts';

const series = columns<SeriesRow>('step_s, at, verifies, uses, pending, oldest_age_s, upstream');

function seriesReads<E extends Engine>(sql: Sql<E>): On<E, SeriesReads> {
  const select = `SELECT ${series.list} FROM latchkey.series WHERE step_s = $1`;
  const counted = (instant: string, table: string) =>
    sql.all<StepCount>(`SELECT ${instant} / CAST($1 AS bigint) * CAST($1 AS bigint) AS at, count(*) AS count FROM latchkey.${table}
       WHERE ${instant} >= $2 AND ${instant} < $3 GROUP BY 1`);
  return {
    get: sql.get(`${select} AND at = $2`),
    list: sql.all(`${select} AND at >= $2 AND at < $3`),
    sales: counted('created_at', 'purchase'),
    refunds: counted('refunded_at', 'purchase'),
    activations: counted('created_at', 'activation'),
  };
}

function seriesTable<E extends Engine>(sql: WritingSql<E>): On<E, SeriesTable> {
  const add = sql.run(`${series.insert('series AS stored')}
     ON CONFLICT (step_s, at) DO UPDATE SET verifies = stored.verifies + excluded.verifies,
       uses = stored.uses + excluded.uses, pending = excluded.pending, oldest_age_s = excluded.oldest_age_s,
       upstream = excluded.upstream`);
  return {
    ...seriesReads(sql),
    add: (row) => add(...series.values(row)),
    prune: sql.run('DELETE FROM latchkey.series WHERE step_s = $1 AND (at < $2 OR at > $3)'),
  };
}

export const tables: FeatureTables = {
  reads: (sql) => ({ series: seriesReads(sql) }),
  tables: (sql) => ({ series: seriesTable(sql) }),
};
