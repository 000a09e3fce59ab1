import { setTimeout as sleep } from 'node:timers/promises';
import closeWithGrace from 'close-with-grace';
import { maxTimerMs } from '../../daemon/system/clock.ts';
import { endingSignals, onEndingSignal, skippedSignals } from '../../daemon/system/process.ts';

/** Ends a sandbox at a signal. */
export function endAtSignal(end: () => Promise<void>): void {
  const closing = endingSignals.includes('SIGHUP') ? ['SIGHUP' as const] : [];
  const skip = ['beforeExit' as const, ...closing, ...skippedSignals];
  const ending = closeWithGrace({ delay: 15_000, skip, logger: undefined }, end);
  onEndingSignal(() => ending.close());
}

/** Runs until a signal. The store goes away after `offlineAfterMs`; null: it stays. */
export async function runUntilSignal(
  { offlineAfterMs, json }: { offlineAfterMs: number | null; json: boolean },
  goAway: () => Promise<void>,
): Promise<never> {
  if (offlineAfterMs !== null) {
    await sleep(offlineAfterMs);
    await goAway();
    if (!json) process.stdout.write('The sandbox is offline now. Press Ctrl-C to quit.\n');
  }
  // A timer keeps the process alive until a signal.
  for (;;) await sleep(maxTimerMs);
}
