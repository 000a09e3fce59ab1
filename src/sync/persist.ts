import { StorageError, type Clock } from '../service/ports.ts';

/** How long to wait for room on a full disk before trying to record again, in ms. */
const fullDiskWaitMs = 1000;

/**
 * Records what the loops have to, and keeps trying while the disk is full: the upstream's answer exists
 * only here until it is written. Rejects on any other fault, or with the signal's reason.
 */
export async function persist<Value>(
  clock: Clock,
  signal: AbortSignal,
  record: () => Promise<Value>,
): Promise<Value> {
  for (;;) {
    try {
      return await record();
    } catch (error) {
      if (!(error instanceof StorageError) || error.fault !== 'full') throw error;
      await clock.sleep(fullDiskWaitMs, signal);
    }
  }
}
