import type { Log } from '../../src/service/ports.ts';
import type { UpstreamMeter } from '../../src/service/status.ts';

function noop(): void {
  // Discards everything.
}

/** A log that discards everything. */
export const silent: Log = { debug: noop, info: noop, warn: noop, error: noop };

/** A meter that discards everything. */
export const uncounted: UpstreamMeter = { answered: noop, unexpected: noop };
