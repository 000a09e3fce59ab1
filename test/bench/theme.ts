import type { Bench } from './bench.ts';
import { figure, type Figure } from './figure.ts';

/** How a figure is to be read: `×` is a ratio to a reference, `/s` per second. */
export type Unit = '×' | '/s' | 'ms' | 'MiB' | 'µs';

export type Goal = { readonly atLeast: number } | { readonly atMost: number };

/** What one contestant reached. */
export type Source = {
  readonly figure: Figure;
  readonly unit: Unit;
  /** Processor time for each request, in µs; null where it was not looked at. */
  readonly processorMicros: number | null;
};

/** A line of the table. */
export type Row = {
  readonly what: string;
  readonly unit: Unit;
  /** Null: not measured, and `note` says why. */
  readonly figure: Figure | null;
  readonly goal: Goal | null;
  /** What the figure was computed from, by name. */
  readonly from: Readonly<Record<string, Source>>;
  readonly note: string | null;
};

/** Rows that belong together, and are chosen by one name on the command line: one file in `themes/`. */
export type Theme = {
  readonly name: string;
  /** For the help, one line. */
  readonly about: string;
  /** Only measured when it is named. */
  readonly isExtra?: boolean;
  /** Measures, and gives the rows as they come. */
  readonly measure: (bench: Bench) => AsyncIterable<Row>;
};

/** What one contestant reached in some rounds, in which its processor time was not looked at. */
export function plainSource(values: readonly number[], unit: Unit): Source {
  return { figure: figure(values), unit, processorMicros: null };
}

/** A row of one contestant, measured in some rounds, that is compared with nothing. */
export function plainRow(
  what: string,
  unit: Unit,
  values: readonly number[],
  { goal = null, note = null, from = {} }: Partial<Pick<Row, 'goal' | 'note' | 'from'>> = {},
): Row {
  return { what, unit, figure: figure(values), goal, from, note };
}

/** A row of which nothing could be measured here. */
export function notMeasured(what: string, unit: Unit, goal: Goal | null, why: string): Row {
  return { what, unit, figure: null, goal, from: {}, note: `not measured: ${why}` };
}

export function isReached(goal: Goal, { median }: Figure): boolean {
  return 'atLeast' in goal ? median >= goal.atLeast : median <= goal.atMost;
}
