import type { Log } from '../../src/service/ports.ts';
import type { UpstreamMeter } from '../../src/service/status.ts';

function nothing(): void {
  // Nobody listens.
}

/** A log that nobody reads. */
export const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** A meter that nobody reads. */
export const uncounted: UpstreamMeter = { answered: nothing, unexpected: nothing };
