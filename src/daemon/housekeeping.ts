import { StorageError, type Writer } from '../service/ports.ts';
import type { KeptClock } from './clock.ts';

const minuteMs = 60_000;
const minutesBetweenPrunes = 60;

/** Remembers the time reached every minute, and removes what is no longer kept every hour. */
export async function keepHouse(
  { writer, clock }: { writer: Writer; clock: KeptClock },
  signal: AbortSignal,
): Promise<void> {
  for (let minute = 0; !signal.aborted; minute += 1) {
    try {
      await writer.write('markTime', { mark: clock.mark() });
      if (minute % minutesBetweenPrunes === 0) await writer.write('prune', {});
    } catch (error) {
      // A full disk passes; the next minute tries again.
      if (!(error instanceof StorageError) || error.fault !== 'full') throw error;
    }
    // Ended early only by the signal, which the loop looks at.
    await clock.sleep(minuteMs, signal).catch(() => undefined);
  }
}
