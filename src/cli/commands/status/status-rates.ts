import { formatAge } from '../../format.ts';
import { counted } from '../../../domain/text.ts';
import type { Status } from './status-view.ts';

/** What is counted at one look at the daemon; `at` in ms of a clock that only passes. */
export interface Sample {
  readonly at: number;
  readonly uptime: number;
  readonly verifies: number;
  readonly uses: number;
  readonly delivered: number;
  readonly waiting: number;
}

/** How much happens a second; `drained`: how many fewer wait, negative while the outbox grows. */
export interface Rates {
  readonly verifies: number;
  readonly uses: number;
  readonly deliveries: number;
  readonly drained: number;
}

/** Rates are told over this time, so that they do not jump, in ms. */
const windowMs = 10_000;

/** Counts what a status tells; held changes wait for a person, not for their turn. */
export function sampleOf({ uptime_s: uptime, totals, outbox }: Status, at: number): Sample {
  const waiting = outbox === null ? 0 : outbox.pending + outbox.in_flight + outbox.uncertain - outbox.held;
  const delivered = outbox === null ? 0 : outbox.delivered + outbox.inferred;
  return { at, uptime, ...totals, delivered, waiting };
}

/** The samples to go on with; after a restart of the daemon its totals begin anew. */
export function addSample(samples: readonly Sample[], next: Sample): readonly Sample[] {
  const last = samples.at(-1);
  if (last !== undefined && next.uptime < last.uptime) return [next];
  const first = samples.findLastIndex(({ at }) => at <= next.at - windowMs);
  return [...samples.slice(Math.max(0, first)), next];
}

/** Null before there are two samples. */
export function ratesOf(samples: readonly Sample[]): Rates | null {
  const [first] = samples;
  const last = samples.at(-1);
  if (first === undefined || last === undefined || last.at <= first.at) return null;
  const seconds = (last.at - first.at) / 1000;
  // What is delivered is forgotten after some days: that makes no negative rate.
  const rate = (count: (sample: Sample) => number): number => (count(last) - count(first)) / seconds;
  return {
    verifies: rate(({ verifies }) => verifies),
    uses: rate(({ uses }) => uses),
    deliveries: Math.max(
      0,
      rate(({ delivered }) => delivered),
    ),
    drained: -rate(({ waiting }) => waiting),
  };
}

/** In how many seconds nothing waits any more; null where that cannot be told. */
export function secondsLeft(waiting: number, rates: Rates | null): number | null {
  if (waiting === 0) return 0;
  return rates === null || rates.drained <= 0 ? null : Math.ceil(waiting / rates.drained);
}

/** Writes the rates: `3.0 verifies/s, …`. */
export function formatRates(rates: Rates | null, isAgent: boolean): string {
  if (rates === null) return 'after the next look';
  const deliveries = isAgent ? [`${rates.deliveries.toFixed(1)} deliveries/s`] : [];
  return [`${rates.verifies.toFixed(1)} verifies/s`, `${rates.uses.toFixed(1)} uses/s`, ...deliveries].join(
    ', ',
  );
}

/** Writes how many wait, how fast they go, and how long that takes. */
export function formatDrain(waiting: number, rates: Rates | null): string {
  if (waiting === 0) return 'nothing waits';
  const those = counted(waiting, 'waits', 'wait');
  if (rates === null) return those;
  const left = secondsLeft(waiting, rates);
  if (left !== null) return `${those}, ${rates.drained.toFixed(1)}/s go: ${formatAge(left)} left`;
  if (rates.drained === 0) return `${those}, and none goes`;
  return `${those}, and ${(-rates.drained).toFixed(1)}/s more come than go`;
}
