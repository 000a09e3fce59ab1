import { difference, figure, ratio } from './figure.ts';
import type { Measured } from './load/load.ts';
import type { Goal, Row, Source, Unit } from './theme.ts';

/** The compared value of a load, and its unit. */
const units: Readonly<Record<Compared, Unit>> = { perSecond: '/s', p50: 'ms', p99: 'ms', max: 'ms' };
type Compared = 'perSecond' | 'p50' | 'p99' | 'max';

/** The compared value, and the goal of the row. Null: the row has no goal. */
type How = { by: Compared; goal: Goal | null };

/** The rounds of one or more contestants, by name. */
type Named = Readonly<Record<string, readonly Measured[]>>;

/** The ratio of two contestants in the same round. */
export function compare(what: string, of: Named, to: Named, { by, goal }: How): Row {
  const all = { ...of, ...to };
  const times = ratio(valuesOf(of, by), valuesOf(to, by));
  return { what, unit: '×', figure: times, goal, from: sourcesOf(all, by), note: noteOn(all) };
}

/** The difference of two contestants in the same round. */
export function exceed(what: string, of: Named, to: Named, { by, goal }: How): Row {
  const more = difference(valuesOf(of, by), valuesOf(to, by));
  return { what, unit: units[by], figure: more, goal, from: sourcesOf({ ...of, ...to }, by), note: null };
}

/** The value of one contestant. */
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

/** If the load generator was the limit, the real ratio is worse. */
function noteOn(all: Named): string | null {
  const isIdle = ({ connections, busy }: Measured): boolean =>
    connections > 1 && busy !== null && busy < idleBelow;
  const idle = Object.entries(all).filter(([, rounds]) => rounds.every(isIdle));
  return idle.length === 0 ? null : `the load generator limits ${idle.map(([name]) => name).join(', ')}`;
}

/** A server that uses less of a processor waits for its callers. */
const idleBelow = 0.8;
