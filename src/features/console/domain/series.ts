import { dayMs } from '../../../domain/time.ts';

/** The lengths of steps, in seconds, and how long the values of each are kept, in ms. */
export const seriesKeptMs = { 60: dayMs, 600: 30 * dayMs } as const;

export type SeriesStep = keyof typeof seriesKeptMs;

export const seriesSteps: readonly SeriesStep[] = [60, 600];

/** From the best state to the worst. `unknown` counts only if nothing else was seen. */
const upstreamStates = ['unknown', 'up', 'paused', 'down'] as const;

export type UpstreamState = (typeof upstreamStates)[number];

/** What happened in a step. The last three are null on an authority and a holder, which have no outbox. */
export type SeriesValues = {
  verifies: number;
  uses: number;
  /** Unfinished operations at the end of the step. */
  pending: number | null;
  /** The age of the oldest unfinished operation at the end of the step, in seconds; null: there was none. */
  oldestAgeS: number | null;
  /** The worst state in the step. */
  upstream: UpstreamState | null;
};

/** `at`: when the step begins, in epoch ms. */
export type SeriesRow = SeriesValues & { stepS: SeriesStep; at: number };

export function worstState(one: UpstreamState | null, other: UpstreamState | null): UpstreamState | null {
  if (one === null || other === null) return one ?? other;
  return upstreamStates.indexOf(one) > upstreamStates.indexOf(other) ? one : other;
}

/** When the step begins that contains an instant, in epoch ms. */
export function stepStart(at: number, stepS: SeriesStep): number {
  return Math.floor(at / (stepS * 1000)) * stepS * 1000;
}

/** How long after its end a step is recorded at the latest, in ms. */
const recordedWithinMs = 5_000;

/** The steps of an answer at `now`: those that have ended. `end` is excluded. */
export function seriesWindow(stepS: SeriesStep, now: number): { start: number; end: number } {
  const end = stepStart(now - recordedWithinMs, stepS);
  return { start: end - seriesKeptMs[stepS], end };
}

/** One element for each step; null: nothing was recorded. */
export type Series = { start: number; stepS: SeriesStep; steps: readonly (SeriesValues | null)[] };

/** How often something happened in the shop of an authority, in each step. The last step goes on. */
export type ShopSeries = { start: number } & Readonly<
  Record<'sales' | 'refunds' | 'activations', readonly number[]>
>;

/** How often something happened in a step, which begins at `at` (epoch ms). */
export type StepCount = { at: number; count: number };

/** The steps of the shop at `now`, with the one that goes on. `end` is excluded. */
export function shopWindow(stepS: SeriesStep, now: number): { start: number; end: number } {
  const end = stepStart(now, stepS) + stepS * 1000;
  return { start: end - seriesKeptMs[stepS], end };
}

/** The count of each step from `start`. `counts`: those within the window, in any order. */
export function countsOf(counts: readonly StepCount[], stepS: SeriesStep, start: number): number[] {
  const byStart = new Map(counts.map(({ at, count }) => [at, count]));
  return stepsFrom(start, stepS).map((at) => byStart.get(at) ?? 0);
}

/** When the steps of an answer begin. */
function stepsFrom(start: number, stepS: SeriesStep): number[] {
  return Array.from(
    { length: seriesKeptMs[stepS] / (stepS * 1000) },
    (_, index) => start + index * stepS * 1000,
  );
}

/** `rows`: those within the window, in any order. */
export function seriesOf(rows: readonly SeriesRow[], stepS: SeriesStep, now: number): Series {
  const byStart = new Map(rows.map((row) => [row.at, row]));
  const { start } = seriesWindow(stepS, now);
  return { start, stepS, steps: stepsFrom(start, stepS).map((at) => byStart.get(at) ?? null) };
}
