import { type Clock, StorageError } from '../service/ports.ts';

/**
 * A sleep that can be ended early; a call to wake up while nobody sleeps is not lost.
 *
 * For example: the push loop finds nothing due and is about to sleep. In between a caller records a use, and
 * wakes the loop. Were that call lost, the use would wait for the loop's next look, half a minute later.
 */
export class Wake {
  readonly #clock: Clock;
  #isWoken = false;
  /** Ends the sleep; null while nobody sleeps. */
  #end: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  up(): void {
    this.#isWoken = true;
    this.#end?.();
  }

  /** Resolves after `ms` (for ever if infinite), when woken, or when the signal aborts. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#isWoken && !signal.aborted && ms > 0) await this.#sleep(ms, signal);
    this.#isWoken = false;
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const ending = new AbortController();
    const end = (): void => ending.abort(early);
    this.#end = end;
    signal.addEventListener('abort', end, { once: true });
    // Sleeping rejects only when it is ended early, which is what waking is.
    await this.#clock.sleep(ms, ending.signal).catch(() => undefined);
    signal.removeEventListener('abort', end);
    this.#end = null;
  }
}

/** Made once: an error of its own for each time would be most of the cost of waking. */
const early = new Error('woken');

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
