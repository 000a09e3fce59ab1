import type { Bench } from './bench.ts';
import { figure, type Figure } from './figure.ts';

/** The unit of a figure: `×` is a ratio to a reference, `/s` means per second. */
export type Unit = '×' | '/s' | 'ms' | 'MiB' | 'µs';

export type Goal = { readonly atLeast: number } | { readonly atMost: number };

/** The result of one contestant. */
export type Source = {
  readonly figure: Figure;
  readonly unit: Unit;
  /** Processor time per request in µs. Null: not measured. */
  readonly processorMicros: number | null;
};

/** A line of the table. */
export type Row = {
  readonly what: string;
  readonly unit: Unit;
  /** Null: not measured; `note` gives the reason. */
  readonly figure: Figure | null;
  readonly goal: Goal | null;
  /** The results from which the figure was computed, by name. */
  readonly from: Readonly<Record<string, Source>>;
  readonly note: string | null;
};

/** A group of rows with one name for the command line; one file in `themes/`. */
export type Theme = {
  readonly name: string;
  /** One line for the help. */
  readonly about: string;
  /** Whether it runs only when the command line names it. */
  readonly isExtra?: boolean;
  /** Measures and yields the rows one by one. */
  readonly measure: (bench: Bench) => AsyncIterable<Row>;
};

/** The results of one contestant in several rounds without its processor time. */
export function plainSource(values: readonly number[], unit: Unit): Source {
  return { figure: figure(values), unit, processorMicros: null };
}

/** A row of one contestant that is not compared with another. */
export function plainRow(
  what: string,
  unit: Unit,
  values: readonly number[],
  { goal = null, note = null, from = {} }: Partial<Pick<Row, 'goal' | 'note' | 'from'>> = {},
): Row {
  return { what, unit, figure: figure(values), goal, from, note };
}

/** A row that could not be measured on this machine. */
export function notMeasured(what: string, unit: Unit, goal: Goal | null, why: string): Row {
  return { what, unit, figure: null, goal, from: {}, note: `not measured: ${why}` };
}

export function isReached(goal: Goal, { median }: Figure): boolean {
  return 'atLeast' in goal ? median >= goal.atLeast : median <= goal.atMost;
}
