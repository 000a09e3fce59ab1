import { StorageError, type Clock } from '../service/ports.ts';

/** How long to wait before writing again when the disk is full, in ms. */
const fullDiskWaitMs = 1000;

/**
 * A sleep that can be ended early. A call of `up` while nothing sleeps ends the next sleep at once.
 *
 * For example: the push loop finds nothing due and is about to sleep. In between, a caller records a use and wakes the
 * loop. If that call were lost, the use would wait until the loop wakes up by itself, half a minute later.
 */
export class Wake {
  readonly #clock: Clock;
  #isWoken = false;
  /** Ends the sleep; null while nothing sleeps. */
  #end: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  up(): void {
    this.#isWoken = true;
    this.#end?.();
  }

  /** Resolves after `ms` (never, if infinite), when woken, or when the signal aborts. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#isWoken && !signal.aborted && ms > 0) await this.#sleep(ms, signal);
    this.#isWoken = false;
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const ending = new AbortController();
    const end = (): void => ending.abort(early);
    this.#end = end;
    signal.addEventListener('abort', end, { once: true });
    // `sleep` rejects only when it is ended early, which is what waking does.
    await this.#clock.sleep(ms, ending.signal).catch(() => undefined);
    signal.removeEventListener('abort', end);
    this.#end = null;
  }
}

/** Created once: creating an error for each wake-up would be most of its cost. */
const early = new Error('woken');

/** The result of the work, or the signal's reason if the signal aborts first; then `leave` is called as well. */
export async function unlessAborted<Value>(
  work: Promise<Value>,
  signal: AbortSignal,
  leave: () => void = () => undefined,
): Promise<Value> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => {
    leave();
    aborted.reject(signal.reason as Error);
  };
  signal.addEventListener('abort', abort, { once: true });
  return await Promise.race([work, aborted.promise]).finally(() =>
    signal.removeEventListener('abort', abort),
  );
}

/**
 * Writes, and tries again while the disk is full: until the upstream's response is written, it exists only here.
 * Rejects on any other storage error, or with the signal's reason.
 */
export async function persist<Value>(
  clock: Clock,
  signal: AbortSignal,
  write: () => Promise<Value>,
): Promise<Value> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      await clock.sleep(fullDiskWaitMs, signal);
    }
  }
}

/** Writes without waiting for room on a full disk, because a response does not need to be stored. */
export async function persistIfRoom(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isDiskFull(error)) throw error;
  }
}

export function isDiskFull(error: unknown): error is StorageError {
  return error instanceof StorageError && error.fault === 'full';
}
