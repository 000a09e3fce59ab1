import { figure, ratio } from './figure.ts';
import type { Measured } from './load/load.ts';
import type { Goal, Row, Source, Unit } from './theme.ts';

/** What of a load is compared, and in which unit. */
const units: Readonly<Record<Compared, Unit>> = { perSecond: '/s', p99: 'ms' };
type Compared = 'perSecond' | 'p99';

/** The rounds of one contestant, under its name. */
type Named = Readonly<Record<string, readonly Measured[]>>;

/** How many times as fast, or as long, one contestant was as another in the same round. */
export function compare(
  what: string,
  of: Named,
  to: Named,
  { by, goal }: { by: Compared; goal: Goal | null },
): Row {
  const values = (named: Named): number[] =>
    Object.values(named)
      .flat()
      .map((each) => each[by]);
  const all = { ...of, ...to };
  const from = Object.fromEntries(Object.entries(all).map(([name, rounds]) => [name, sourceOf(rounds, by)]));
  return { what, unit: '×', figure: ratio(values(of), values(to)), goal, from, note: noteOn(all) };
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
