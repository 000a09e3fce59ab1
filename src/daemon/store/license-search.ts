import type { Clock } from '../../service/ports.ts';
import type { Writer } from '../../service/writer.ts';
import { ignoreUnavailable } from '../maintenance.ts';
import { pause } from '../system/clock.ts';

const waitMs = 10_000;
/** Licenses in one commit: a larger commit would delay callers. */
const limit = 100;
/** An import adds more between two looks. Its licenses follow when it has ended. */
const maxAdded = 1_000;

/** Makes licenses faster to find while none are imported. A search reads those that are left one by one. */
export async function indexLicenses(
  { writer, clock }: { writer: Writer; clock: Pick<Clock, 'sleep'> },
  signal: AbortSignal,
): Promise<void> {
  let before = 0;
  for (;;) {
    // At the start the store is first checked for damage: a write to a damaged page would end the process.
    await pause(clock, waitMs, signal);
    if (signal.aborted) return;
    await ignoreUnavailable(async () => {
      for (;;) {
        const indexed = await writer.write('indexLicenses', { limit });
        const left = indexed.ok ? indexed.value.left : 0;
        const isIdle = left <= before + maxAdded;
        before = left;
        if (left === 0 || !isIdle || signal.aborted) return;
      }
    });
  }
}
