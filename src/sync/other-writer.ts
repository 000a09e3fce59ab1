import type { Log } from '../service/ports.ts';
import type { UpstreamMeter } from '../service/status.ts';

/** A count at the upstream that this agent's own operations do not explain. */
type UnexpectedCount = { licenseKey: string; expected: number; got: number; operation?: string };

/** Tells of a count that only another writer can have changed. */
export function tellOfOtherWriter(
  { log, meter }: { log: Log; meter: UpstreamMeter },
  count: UnexpectedCount,
): void {
  meter.unexpected();
  log.warn(count, 'another writer changed the count of a key');
}
