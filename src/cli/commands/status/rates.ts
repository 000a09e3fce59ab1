import { formatAge } from '../../format.ts';
import { counted } from '../../../domain/text.ts';
import type { StatusObject } from '../../../wire/status.ts';

/** The counters of the daemon at one time. `at`: in ms of a monotonic clock. */
export interface Sample {
  readonly at: number;
  readonly uptime: number;
  readonly verifies: number;
  readonly uses: number;
  readonly delivered: number;
  readonly waiting: number;
}

/** Events per second. `drained`: by how much the outbox shrinks, negative while it grows. */
export interface Rates {
  readonly verifies: number;
  readonly uses: number;
  readonly deliveries: number;
  readonly drained: number;
}

/** Rates are averages over this time, in ms. */
const windowMs = 10_000;

/** Held changes wait for a decision, so they are not counted as waiting. */
export function sampleOf({ uptime_s: uptime, totals, outbox }: StatusObject, at: number): Sample {
  const waiting = outbox === null ? 0 : outbox.pending + outbox.in_flight + outbox.uncertain - outbox.held;
  const delivered = outbox === null ? 0 : outbox.delivered + outbox.inferred;
  return { at, uptime, ...totals, delivered, waiting };
}

/** Adds a sample and drops old ones. After a restart of the daemon its counters start at zero. */
export function addSample(samples: readonly Sample[], next: Sample): readonly Sample[] {
  const last = samples.at(-1);
  if (last !== undefined && next.uptime < last.uptime) return [next];
  const first = samples.findLastIndex(({ at }) => at <= next.at - windowMs);
  return [...samples.slice(Math.max(0, first)), next];
}

/** Null if there are fewer than two samples. */
export function ratesOf(samples: readonly Sample[]): Rates | null {
  const [first] = samples;
  const last = samples.at(-1);
  if (first === undefined || last === undefined || last.at <= first.at) return null;
  const seconds = (last.at - first.at) / 1000;
  // Delivered changes are deleted after some days, which must not make the rate negative.
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

/** In how many seconds the outbox will be empty; null if it does not shrink. */
export function secondsLeft(waiting: number, rates: Rates | null): number | null {
  if (waiting === 0) return 0;
  return rates === null || rates.drained <= 0 ? null : Math.ceil(waiting / rates.drained);
}

/** Writes the rates: `3.0 verifies/s, …`. */
export function formatRates(rates: Rates | null, isAgent: boolean): string {
  if (rates === null) return 'after the next refresh';
  const deliveries = isAgent ? [`${rates.deliveries.toFixed(1)} deliveries/s`] : [];
  return [`${rates.verifies.toFixed(1)} verifies/s`, `${rates.uses.toFixed(1)} uses/s`, ...deliveries].join(
    ', ',
  );
}

/** Writes how many changes wait, how fast they are sent, and how long that takes. */
export function formatDrain(waiting: number, rates: Rates | null): string {
  if (waiting === 0) return 'no changes waiting';
  const changes = `${counted(waiting, 'change')} waiting`;
  if (rates === null) return changes;
  const left = secondsLeft(waiting, rates);
  if (left !== null)
    return `${changes}, sending ${rates.drained.toFixed(1)}/s, about ${formatAge(left)} left`;
  if (rates.drained === 0) return `${changes}; none are being sent`;
  return `${changes}, growing by ${(-rates.drained).toFixed(1)}/s`;
}
