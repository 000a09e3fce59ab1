import type { Log } from '../service/ports.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { UpstreamMeter } from '../service/status.ts';

/**
 * Tells of a count at the upstream that this agent's own operations do not explain. It is worth a warning only where
 * the configuration says that there is no other writer.
 */
export function tellOfOtherWriter(
  { log, meter }: { log: Log; meter: UpstreamMeter },
  count: { licenseKey: string; expected: number; got: number; operation?: string },
  { writers }: Pick<SyncPolicy, 'writers'>,
): void {
  meter.unexpected();
  log[writers === 'single' ? 'warn' : 'info'](count, 'another writer changed the count of a key');
}
