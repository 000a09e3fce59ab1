import { type Asked, inquire } from '../../client/ask.ts';
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
} from './status-rates.ts';
import { type Status, status, statusFields } from './status-view.ts';

/** How a status is watched: until the signal, looked at again after each pause. */
export interface Watch {
  readonly intervalMs: number;
  readonly signal: AbortSignal;
  /** Resolves after so many ms, and at once when the signal ends it. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Ms that only pass. */
  readonly clock: () => number;
}

/** What was seen at one look. */
interface Look {
  readonly shown: Status;
  readonly raw: unknown;
  readonly rates: Rates | null;
  readonly waiting: number;
}

/** Writes what was seen, or that the daemon is away. */
interface Report {
  readonly seen: (look: Look) => Promise<void> | void;
  readonly away: (reason: string, forMs: number) => Promise<void> | void;
}

/**
 * Shows the status again and again: in place on a terminal, a line each time elsewhere. A daemon that is not
 * there at the first look is a failure; one that goes away later is waited for.
 */
export async function watchStatus(options: GlobalOptions, output: Output, watch: Watch): Promise<number> {
  const { signal, clock } = watch;
  const live = options.json ? null : await output.openLive();
  const report = reportTo(live, options, output, watch);
  let samples: readonly Sample[] = [];
  let lastSeenAt: number | null = null;
  try {
    while (!signal.aborted) {
      const asked = await inquire(options, { path: '/statusz', signal }, status);
      if (signal.aborted) break;
      if (asked.ok) {
        lastSeenAt = clock();
        const sample = sampleOf(asked.data, lastSeenAt);
        samples = addSample(samples, sample);
        const { data: shown, raw } = asked;
        await report.seen({ shown, raw, rates: ratesOf(samples), waiting: sample.waiting });
      } else if (lastSeenAt === null) {
        return asked.complain(output);
      } else {
        await report.away(reasonOf(asked, output), clock() - lastSeenAt);
      }
      await watch.pause(watch.intervalMs, signal);
    }
    return exitCode.done;
  } finally {
    live?.close();
  }
}

/** What would be complained of, in a line. */
function reasonOf(asked: Asked<Status> & { readonly ok: false }, output: Output): string {
  let said = '';
  asked.complain({
    ...output,
    complain(lines) {
      said = (lines[0] ?? '').replace(/^latchkey: /, '');
    },
  });
  return said;
}

function reportTo(live: Live | null, options: GlobalOptions, output: Output, watch: Watch): Report {
  if (options.json) return jsonReport(output);
  return live === null ? lineReport(output) : liveReport(live, options, watch);
}

function liveReport(live: Live, options: GlobalOptions, { intervalMs }: Watch): Report {
  const hint = hintFor(options);
  const footer = `Looked at every ${intervalMs / 1000} s. Ctrl-C ends.`;
  return {
    seen: async ({ shown, rates, waiting }) => {
      const isAgent = shown.outbox !== null;
      const fields = {
        ...statusFields(shown, hint),
        rates: formatRates(rates, isAgent),
        drain: isAgent ? formatDrain(waiting, rates) : null,
      };
      await live.show([formatFields(fields), footer], Date.parse(shown.clock.now));
    },
    away: async (reason, forMs) => {
      const seen = `last seen ${formatAge(Math.round(forMs / 1000))} ago`;
      await live.show([formatFields({ latchkey: [toned('away', 'bad'), `, ${seen}`], reason }), footer]);
    },
  };
}

function lineReport(output: Output): Report {
  return {
    seen: ({ shown, rates, waiting }) => {
      const isAgent = shown.outbox !== null;
      const state = shown.upstream === null ? [] : [formatState(shown.upstream, shown.clock.now)];
      const drain = isAgent ? [formatDrain(waiting, rates)] : [];
      const parts = [shown.role, ...state, formatRates(rates, isAgent), ...drain];
      output.print(`${shown.clock.now} ${parts.join(', ')}`);
    },
    away: (reason) => {
      output.print(`${new Date().toISOString()} away: ${reason}`);
    },
  };
}

function formatState({ state, next_attempt_at }: NonNullable<Status['upstream']>, now: string): string {
  if (next_attempt_at === null) return `upstream ${state}`;
  const waitMs = Math.max(0, Date.parse(next_attempt_at) - Date.parse(now));
  return `upstream ${state}, next attempt in ${formatAge(Math.ceil(waitMs / 1000))}`;
}

function jsonReport(output: Output): Report {
  return {
    seen: ({ raw, rates, waiting }) => {
      const rounded = rates && {
        verifies_per_s: round(rates.verifies),
        uses_per_s: round(rates.uses),
        deliveries_per_s: round(rates.deliveries),
        drained_per_s: round(rates.drained),
      };
      const drain = { waiting, left_s: secondsLeft(waiting, rates) };
      output.printJsonLine({ away: false, ...(raw as object), rates: rounded, drain });
    },
    away: (reason) => {
      output.printJsonLine({ away: true, detail: reason });
    },
  };
}

function round(rate: number): number {
  return Math.round(rate * 100) / 100;
}
