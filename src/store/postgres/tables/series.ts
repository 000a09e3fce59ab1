import type { SeriesRow } from '../../../domain/series.ts';
import type { AuthorityTable, AwaitableTable, SeriesReads, SeriesTable } from '../../../service/tables.ts';
import type { Prepare, WritingPrepare } from '../statements.ts';

export function seriesReads(prepare: Prepare): AwaitableTable<SeriesReads> {
  const select = `SELECT step_s AS "stepS", at, verifies, uses, pending, oldest_age_s AS "oldestAgeS", upstream
    FROM ${prepare.names.series}`;
  return {
    get: prepare.query<SeriesRow>(`${select} WHERE step_s = $1 AND at = $2`).first,
    list: prepare.query<SeriesRow>(`${select} WHERE step_s = $1 AND at >= $2 AND at < $3`).all,
  };
}

export function seriesTable(prepare: WritingPrepare): AuthorityTable<SeriesTable> {
  const { series } = prepare.names;
  const add =
    prepare.write(`INSERT INTO ${series} AS stored (step_s, at, verifies, uses, pending, oldest_age_s, upstream)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (step_s, at) DO UPDATE SET verifies = stored.verifies + excluded.verifies,
       uses = stored.uses + excluded.uses, pending = excluded.pending, oldest_age_s = excluded.oldest_age_s,
       upstream = excluded.upstream`);
  return {
    ...seriesReads(prepare),
    add: ({ stepS, at, verifies, uses, pending, oldestAgeS, upstream }) =>
      add(stepS, at, verifies, uses, pending, oldestAgeS, upstream),
    prune: prepare.write(`DELETE FROM ${series} WHERE step_s = $1 AND (at < $2 OR at > $3)`),
  };
}
