import { done, type Result } from '../../../domain/problem/problem.ts';
import {
  countsOf,
  seriesKeptMs,
  seriesOf,
  seriesSteps,
  seriesWindow,
  shopWindow,
  stepStart,
  worstState,
  type Series,
  type SeriesStep,
  type SeriesValues,
  type ShopSeries,
} from '../domain/series.ts';
import { dayMs } from '../../../domain/time.ts';
import type { AuthorityReader, AuthorityTransaction } from '../../../service/tables.ts';

/** Adds what happened in the minute of `at` (epoch ms) to its steps. */
export async function recordSeries(
  { series }: AuthorityTransaction,
  { at, values }: { at: number; values: SeriesValues },
): Promise<Result<null>> {
  for (const stepS of seriesSteps) {
    const start = stepStart(at, stepS);
    // Only an agent has an upstream, and one writer. Nodes of an authority write at the same time: `add` adds their counts.
    const before = values.upstream === null ? null : await series.get(stepS, start);
    const upstream = worstState(before?.upstream ?? null, values.upstream);
    await series.add({ ...values, upstream, stepS, at: start });
  }
  return done(null);
}

/**
 * Removes the steps that are kept no longer, and steps in the future, from before the clock was set back. The future is
 * compared with `now`, the past with `verifiedNow`, so that a wrong clock removes nothing that is in the window.
 */
export async function pruneSeries(
  { series }: AuthorityTransaction,
  { now, verifiedNow }: { now: number; verifiedNow: number },
): Promise<Result<{ removed: number }>> {
  for (const stepS of seriesSteps) await series.prune(stepS, verifiedNow - seriesKeptMs[stepS], now + dayMs);
  // All of them at once.
  return done({ removed: 0 });
}

/** The series up to `now` (epoch ms). */
export async function readSeries(
  { series }: Pick<AuthorityReader, 'series'>,
  stepS: SeriesStep,
  now: number,
): Promise<Series> {
  const { start, end } = seriesWindow(stepS, now);
  return seriesOf(await series.list(stepS, start, end), stepS, now);
}

/** What happened in the shop of an authority up to `now` (epoch ms). */
export async function readShopSeries(
  { series }: Pick<AuthorityReader, 'series'>,
  stepS: SeriesStep,
  now: number,
): Promise<ShopSeries> {
  const { start, end } = shopWindow(stepS, now);
  const within = [stepS * 1000, start, end] as const;
  return {
    start,
    sales: countsOf(await series.sales(...within), stepS, start),
    refunds: countsOf(await series.refunds(...within), stepS, start),
    activations: countsOf(await series.activations(...within), stepS, start),
  };
}
