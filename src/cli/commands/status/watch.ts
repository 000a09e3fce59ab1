import { request } from '../../client/request.ts';
import { CommandError, type GlobalOptions } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { formatAge, formatFields, toned } from '../../format.ts';
import { hintFor } from '../../hint.ts';
import type { Live, Output } from '../../output.ts';
import { statusFields } from './status-view.ts';
import { type StatusObject, statusObject } from '../../../wire/status.ts';
import { counted } from '../../../domain/text.ts';

/** How the status is watched: it is read again after each pause, until the signal. */
interface Watch {
  readonly intervalMs: number;
  readonly signal: AbortSignal;
  /** Waits, and resolves early when the signal aborts. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** A monotonic clock in ms. */
  readonly clock: () => number;
}

interface Update {
  readonly status: StatusObject;
  readonly raw: unknown;
  readonly rates: Rates | null;
  readonly waiting: number;
}

interface Writer {
  readonly update: (update: Update) => Promise<void> | void;
  readonly unavailable: (reason: string, forMs: number) => Promise<void> | void;
}

/**
 * Shows the status again and again: in place on a terminal, otherwise one line for each update. It is a failure if the
 * daemon does not run at the start. If it stops later, this waits for it.
 */
export async function watchStatus(options: GlobalOptions, output: Output, watch: Watch): Promise<number> {
  const { signal, clock } = watch;
  const live = options.json ? null : await output.openLive();
  const writer = createWriter(live, options, output, watch);
  let samples: readonly Sample[] = [];
  let lastSeenAt: number | null = null;
  try {
    while (!signal.aborted) {
      try {
        const { data: status, raw } = await request(options, { path: '/statusz', signal }, statusObject);
        if (signal.aborted) break;
        lastSeenAt = clock();
        const sample = sampleOf(status, lastSeenAt);
        samples = addSample(samples, sample);
        await writer.update({ status, raw, rates: ratesOf(samples), waiting: sample.waiting });
      } catch (error) {
        if (signal.aborted) break;
        if (!(error instanceof CommandError) || lastSeenAt === null) throw error;
        const [reason = ''] = error.lines;
        await writer.unavailable(reason.replace(/^latchkey: /, ''), clock() - lastSeenAt);
      }
      await watch.pause(watch.intervalMs, signal);
    }
    return exitCode.done;
  } finally {
    live?.close();
  }
}

function createWriter(live: Live | null, options: GlobalOptions, output: Output, watch: Watch): Writer {
  if (options.json) return jsonWriter(output);
  return live === null ? lineWriter(output) : liveWriter(live, options, watch);
}

function liveWriter(live: Live, options: GlobalOptions, { intervalMs }: Watch): Writer {
  const hint = hintFor(options);
  const footer = `Refreshing every ${intervalMs / 1000} s. Press Ctrl-C to quit.`;
  return {
    update: async ({ status, rates, waiting }) => {
      const isAgent = status.outbox !== null;
      const fields = {
        ...statusFields(status, hint),
        rates: formatRates(rates, isAgent),
        drain: isAgent ? formatDrain(waiting, rates) : null,
      };
      await live.show([formatFields(fields), footer], Date.parse(status.clock.now));
    },
    unavailable: async (reason, forMs) => {
      const seen = `last seen ${formatAge(Math.round(forMs / 1000))} ago`;
      await live.show([
        formatFields({ latchkey: [toned('unavailable', 'bad'), `, ${seen}`], reason }),
        footer,
      ]);
    },
  };
}

function lineWriter(output: Output): Writer {
  return {
    update: ({ status, rates, waiting }) => {
      const isAgent = status.outbox !== null;
      const state = status.upstream === null ? [] : [formatState(status.upstream, status.clock.now)];
      const drain = isAgent ? [formatDrain(waiting, rates)] : [];
      const parts = [status.role, ...state, formatRates(rates, isAgent), ...drain];
      output.print(`${status.clock.now} ${parts.join(', ')}`);
    },
    unavailable: (reason) => {
      output.print(`${new Date().toISOString()} unavailable: ${reason}`);
    },
  };
}

function formatState({ state, next_attempt_at }: NonNullable<StatusObject['upstream']>, now: string): string {
  if (next_attempt_at === null) return `upstream ${state}`;
  const waitMs = Math.max(0, Date.parse(next_attempt_at) - Date.parse(now));
  return `upstream ${state}, next attempt in ${formatAge(Math.ceil(waitMs / 1000))}`;
}

function jsonWriter(output: Output): Writer {
  return {
    update: ({ raw, rates, waiting }) => {
      const rounded = rates && {
        verifies_per_s: round(rates.verifies),
        uses_per_s: round(rates.uses),
        deliveries_per_s: round(rates.deliveries),
        drained_per_s: round(rates.drained),
      };
      const drain = { waiting, left_s: secondsLeft(waiting, rates) };
      output.printJsonLine({ away: false, ...(raw as object), rates: rounded, drain });
    },
    unavailable: (reason) => {
      output.printJsonLine({ away: true, detail: reason });
    },
  };
}

function round(rate: number): number {
  return Math.round(rate * 100) / 100;
}

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
interface Rates {
  readonly verifies: number;
  readonly uses: number;
  readonly deliveries: number;
  readonly drained: number;
}

/** Rates are averages over this time, in ms. */
const windowMs = 10_000;

/** Held changes wait for a decision, so they are not counted as waiting. */
function sampleOf({ uptime_s: uptime, totals, outbox }: StatusObject, at: number): Sample {
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
