import type { Log } from '../service/ports.ts';
import type { UpstreamMeter } from '../service/status.ts';

/** Tells of a count at the upstream that this agent's own operations do not explain. */
export function tellOfOtherWriter(
  { log, meter }: { log: Log; meter: UpstreamMeter },
  count: { licenseKey: string; expected: number; got: number; operation?: string },
): void {
  meter.unexpected();
  log.warn(count, 'another writer changed the count of a key');
}
