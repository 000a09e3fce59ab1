import type { SeriesRow, SeriesStep, StepCount } from '../domain/series.ts';

/** What happened in each minute and in each ten minutes. */
export interface SeriesReads {
  get(stepS: SeriesStep, at: number): SeriesRow | null;
  /** The steps that begin from `start` (epoch ms) to before `end`, in any order. */
  list(stepS: SeriesStep, start: number, end: number): SeriesRow[];
  /** How often each happened in the steps that begin from `start` (epoch ms) to before `end`; steps without any are left out. */
  sales(stepMs: number, start: number, end: number): StepCount[];
  refunds(stepMs: number, start: number, end: number): StepCount[];
  activations(stepMs: number, start: number, end: number): StepCount[];
}
export interface SeriesTable extends SeriesReads {
  /** Adds the counts to those of the step, and replaces its other values. */
  add(row: SeriesRow): void;
  /** Removes the steps that begin before `before` or after `after` (epoch ms). */
  prune(stepS: SeriesStep, before: number, after: number): void;
}

declare module '../../../service/tables.ts' {
  interface Reader {
    series: SeriesReads;
  }
  interface Transaction {
    series: SeriesTable;
  }
}
