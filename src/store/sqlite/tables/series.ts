import type { SeriesRow } from '../../../domain/series.ts';
import type { SeriesReads, SeriesTable } from '../../../service/tables.ts';
import type { Prepare } from '../statements.ts';

const select = `SELECT step_s AS stepS, at, verifies, uses, pending, oldest_age_s AS oldestAgeS, upstream FROM series`;

export function seriesReads(prepare: Prepare): SeriesReads {
  return {
    get: prepare.query<SeriesRow>(`${select} WHERE step_s = ? AND at = ?`).first,
    list: prepare.query<SeriesRow>(`${select} WHERE step_s = ? AND at >= ? AND at < ?`).all,
  };
}

export function seriesTable(prepare: Prepare): SeriesTable {
  const prune = prepare.change('DELETE FROM series WHERE step_s = :stepS AND (at < :before OR at > :after)');
  return {
    ...seriesReads(prepare),
    add: prepare.change(`INSERT INTO series (step_s, at, verifies, uses, pending, oldest_age_s, upstream)
     VALUES (:stepS, :at, :verifies, :uses, :pending, :oldestAgeS, :upstream)
     ON CONFLICT (step_s, at) DO UPDATE SET verifies = verifies + excluded.verifies, uses = uses + excluded.uses,
       pending = excluded.pending, oldest_age_s = excluded.oldest_age_s, upstream = excluded.upstream`),
    prune: (stepS, before, after) => prune({ stepS, before, after }),
  };
}
