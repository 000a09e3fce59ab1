import { request, type Result } from '../../client/request.ts';
import type { GlobalOptions } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { formatAge, formatFields, toned } from '../../format.ts';
import { hintFor } from '../../hint.ts';
import type { Live, Output } from '../../output.ts';
import {
  addSample,
  formatDrain,
  formatRates,
  type Rates,
  ratesOf,
  type Sample,
  sampleOf,
  secondsLeft,
} from './rates.ts';
import { statusFields } from './status-view.ts';
import { type StatusObject, statusObject } from '../../../wire/status.ts';

/** How the status is watched: it is read again after each pause, until the signal. */
export interface Watch {
  readonly intervalMs: number;
  readonly signal: AbortSignal;
  /** Waits, and resolves early when the signal aborts. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** A monotonic clock in ms. */
  readonly clock: () => number;
}

/** The status at one time. */
interface Update {
  readonly shown: StatusObject;
  readonly raw: unknown;
  readonly rates: Rates | null;
  readonly waiting: number;
}

/** Writes a status, or that the daemon is unavailable. */
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
      const result = await request(options, { path: '/statusz', signal }, statusObject);
      if (signal.aborted) break;
      if (result.ok) {
        lastSeenAt = clock();
        const sample = sampleOf(result.data, lastSeenAt);
        samples = addSample(samples, sample);
        const { data: shown, raw } = result;
        await writer.update({ shown, raw, rates: ratesOf(samples), waiting: sample.waiting });
      } else if (lastSeenAt === null) {
        return result.report(output);
      } else {
        await writer.unavailable(reasonOf(result, output), clock() - lastSeenAt);
      }
      await watch.pause(watch.intervalMs, signal);
    }
    return exitCode.done;
  } finally {
    live?.close();
  }
}

/** The first line of the error. */
function reasonOf(result: Result<StatusObject> & { readonly ok: false }, output: Output): string {
  let reason = '';
  result.report({
    ...output,
    printError(lines) {
      reason = (lines[0] ?? '').replace(/^latchkey: /, '');
    },
  });
  return reason;
}

function createWriter(live: Live | null, options: GlobalOptions, output: Output, watch: Watch): Writer {
  if (options.json) return jsonWriter(output);
  return live === null ? lineWriter(output) : liveWriter(live, options, watch);
}

function liveWriter(live: Live, options: GlobalOptions, { intervalMs }: Watch): Writer {
  const hint = hintFor(options);
  const footer = `Refreshing every ${intervalMs / 1000} s. Press Ctrl-C to quit.`;
  return {
    update: async ({ shown, rates, waiting }) => {
      const isAgent = shown.outbox !== null;
      const fields = {
        ...statusFields(shown, hint),
        rates: formatRates(rates, isAgent),
        drain: isAgent ? formatDrain(waiting, rates) : null,
      };
      await live.show([formatFields(fields), footer], Date.parse(shown.clock.now));
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
    update: ({ shown, rates, waiting }) => {
      const isAgent = shown.outbox !== null;
      const state = shown.upstream === null ? [] : [formatState(shown.upstream, shown.clock.now)];
      const drain = isAgent ? [formatDrain(waiting, rates)] : [];
      const parts = [shown.role, ...state, formatRates(rates, isAgent), ...drain];
      output.print(`${shown.clock.now} ${parts.join(', ')}`);
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
