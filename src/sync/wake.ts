import type { Clock } from '../service/ports.ts';

/**
 * A sleep that can be ended early; a call to wake up while nobody sleeps is not lost.
 *
 * For example: the push loop finds nothing due and is about to sleep. In between a caller records a use, and
 * wakes the loop. Were that call lost, the use would wait for the loop's next look, half a minute later.
 */
export class Wake {
  readonly #clock: Clock;
  #woken = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  up(): void {
    this.#woken.abort();
  }

  /** Resolves after `ms` (for ever if infinite), when woken, or when the signal aborts. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    const woken = AbortSignal.any([this.#woken.signal, signal]);
    if (!woken.aborted && ms > 0) {
      // Sleeping rejects only when it is ended early, which is what waking is.
      await this.#clock.sleep(ms, woken).catch(() => undefined);
    }
    this.#woken = new AbortController();
  }
}
