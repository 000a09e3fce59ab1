import { difference, figure, ratio } from './figure.ts';
import type { Measured } from './load/load.ts';
import type { Goal, Row, Source, Unit } from './theme.ts';

/** What of a load is compared, and in which unit. */
const units: Readonly<Record<Compared, Unit>> = { perSecond: '/s', p50: 'ms', p99: 'ms', max: 'ms' };
type Compared = 'perSecond' | 'p50' | 'p99' | 'max';

/** By what it is compared, and how far the row should get; null: it only tells. */
type How = { by: Compared; goal: Goal | null };

/** The rounds of one contestant or more, under its name. */
type Named = Readonly<Record<string, readonly Measured[]>>;

/** How many times as fast, or as long, one contestant was as another in the same round. */
export function compare(what: string, of: Named, to: Named, { by, goal }: How): Row {
  const all = { ...of, ...to };
  const times = ratio(valuesOf(of, by), valuesOf(to, by));
  return { what, unit: '×', figure: times, goal, from: sourcesOf(all, by), note: noteOn(all) };
}

/** What one contestant had more than another in the same round. */
export function exceed(what: string, of: Named, to: Named, { by, goal }: How): Row {
  const more = difference(valuesOf(of, by), valuesOf(to, by));
  return { what, unit: units[by], figure: more, goal, from: sourcesOf({ ...of, ...to }, by), note: null };
}

/** What one contestant had. */
export function show(what: string, of: Named, { by, goal }: How): Row {
  return {
    what,
    unit: units[by],
    figure: figure(valuesOf(of, by)),
    goal,
    from: {},
    note: null,
  };
}

function valuesOf(named: Named, by: Compared): number[] {
  return Object.values(named)
    .flat()
    .map((each) => each[by]);
}

function sourcesOf(named: Named, by: Compared): Record<string, Source> {
  return Object.fromEntries(Object.entries(named).map(([name, rounds]) => [name, sourceOf(rounds, by)]));
}

function sourceOf(rounds: readonly Measured[], by: Compared): Source {
  const micros = rounds.flatMap(({ processorMicros }) => processorMicros ?? []);
  const processorMicros = micros.length === 0 ? null : figure(micros).median;
  return { figure: figure(rounds.map((each) => each[by])), unit: units[by], processorMicros };
}

/** Where the generator could not ask as fast as a server could answer, the ratio is too kind. */
function noteOn(all: Named): string | null {
  const isIdle = ({ connections, busy }: Measured): boolean =>
    connections > 1 && busy !== null && busy < idleBelow;
  const idle = Object.entries(all).filter(([, rounds]) => rounds.every(isIdle));
  return idle.length === 0 ? null : `the load generator limits ${idle.map(([name]) => name).join(', ')}`;
}

/** A server that keeps less of a processor busy waits for its callers. */
const idleBelow = 0.8;
