import { pause, type PersistentClock } from '../../../daemon/system/clock.ts';
import { stepStart, worstState, type SeriesValues, type UpstreamState } from '../domain/series.ts';
import type { Totals } from '../../../service/status.ts';
import type { Writer } from '../../../service/writer.ts';
import { ignoreUnavailable } from '../../../daemon/maintenance.ts';
import { minuteMs } from '../../../domain/time.ts';

/** How often the state of the upstream is looked at, in ms. */
const sampleMs = 10_000;

export type RecorderParts = {
  writer: Writer;
  clock: Pick<PersistentClock, 'now' | 'sleep'>;
  /** The verifies and uses since the start of the process. */
  totals: () => Totals;
  /** Null on an authority and a holder. */
  outbox: () => { pending: number; oldestAt: number | null } | null;
  upstream: () => UpstreamState | null;
};

/** Records each minute for `GET /admin/v1/series`. A start adds to the minute in which the process before it stopped. */
export async function recordMinutes(parts: RecorderParts, signal: AbortSignal): Promise<void> {
  const { clock, totals } = parts;
  let before = totals();
  let minute = stepStart(clock.now(), 60);
  let upstream = parts.upstream();
  while (!signal.aborted) {
    await pause(clock, Math.min(sampleMs, minuteMs - (clock.now() - minute)), signal);
    const now = stepStart(clock.now(), 60);
    upstream = worstState(upstream, parts.upstream());
    if (now === minute && !signal.aborted) continue;
    const after = totals();
    const counts = { verifies: after.verifies - before.verifies, uses: after.uses - before.uses };
    // A minute that cannot be stored is left out.
    await ignoreUnavailable(() => record(parts, minute, { ...counts, upstream }));
    before = after;
    minute = now;
    upstream = parts.upstream();
  }
}

async function record(
  { writer, clock, outbox }: RecorderParts,
  at: number,
  values: Pick<SeriesValues, 'verifies' | 'uses' | 'upstream'>,
): Promise<void> {
  const { pending = null, oldestAt = null } = outbox() ?? {};
  const oldestAgeS = oldestAt === null ? null : Math.max(0, Math.floor((clock.now() - oldestAt) / 1000));
  await writer.write('recordSeries', { at, values: { ...values, pending, oldestAgeS } });
}
