import type { Clock } from '../../../service/ports.ts';
import type { Announcer } from '../../../service/writer.ts';

/** How often waiting requests are looked at, in ms: a wait ends at most this much too late. */
const tickMs = 1_000;

/** `changed`: look at the license again. `over`: the time is over, or the caller has left. */
type End = 'changed' | 'over';

type Waiting = {
  /** Monotonic ms. */
  until: number;
  end: (reason: End) => void;
};

type Parts = {
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
  changes: Pick<Announcer, 'subscribe'>;
};

/** The requests that wait until a license changes (`Prefer: wait`), by license key. One timer serves all of them. */
export class WaitingRequests {
  readonly #parts: Parts;
  readonly #ofLicense = new Map<string, Set<Waiting>>();
  #count = 0;
  /** Counts announcements, so that a change between a read and the wait after it is noticed. */
  #generation = 0;
  #isTicking = false;
  readonly #stopped = new AbortController();

  constructor(parts: Parts) {
    this.#parts = parts;
    parts.changes.subscribe((changes) => {
      this.#generation += 1;
      for (const change of changes) {
        if (change === 'anything') this.#endAll('changed');
        else if (typeof change === 'object') this.#endOf(change.licenseKey);
      }
    });
  }

  get count(): number {
    return this.#count;
  }

  /** Read it before the license, and pass it to `wait`. */
  get generation(): number {
    return this.#generation;
  }

  /** `since`: the generation before the license was read. */
  wait(
    licenseKey: string,
    { forMs, since, signal }: { forMs: number; since: number; signal: AbortSignal },
  ): Promise<End> {
    if (this.#stopped.signal.aborted || signal.aborted || forMs <= 0) return Promise.resolve('over');
    if (since !== this.#generation) return Promise.resolve('changed');
    return new Promise((resolve) => {
      const leave = (): void => waiting.end('over');
      const waiting: Waiting = {
        until: this.#parts.clock.monotonic() + forMs,
        end: (reason) => {
          signal.removeEventListener('abort', leave);
          this.#remove(licenseKey, waiting);
          resolve(reason);
        },
      };
      signal.addEventListener('abort', leave);
      this.#add(licenseKey, waiting);
    });
  }

  /** Ends all waits, now and later, because the process stops. */
  stop(): void {
    this.#stopped.abort();
    this.#endAll('over');
  }

  #add(licenseKey: string, waiting: Waiting): void {
    const others = this.#ofLicense.get(licenseKey);
    if (others === undefined) this.#ofLicense.set(licenseKey, new Set([waiting]));
    else others.add(waiting);
    this.#count += 1;
    if (!this.#isTicking) void this.#tick();
  }

  #remove(licenseKey: string, waiting: Waiting): void {
    const others = this.#ofLicense.get(licenseKey);
    others?.delete(waiting);
    if (others?.size === 0) this.#ofLicense.delete(licenseKey);
    this.#count -= 1;
  }

  /** Ends waits whose time is over, as long as there are waits. */
  async #tick(): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#stopped;
    this.#isTicking = true;
    while (this.#count > 0 && !signal.aborted) {
      await clock.sleep(tickMs, signal).catch(() => undefined);
      const now = clock.monotonic();
      for (const waiting of this.#all()) if (waiting.until <= now) waiting.end('over');
    }
    this.#isTicking = false;
  }

  #endOf(licenseKey: string): void {
    for (const waiting of this.#ofLicense.get(licenseKey) ?? []) waiting.end('changed');
  }

  #endAll(reason: End): void {
    for (const waiting of this.#all()) waiting.end(reason);
  }

  *#all(): Iterable<Waiting> {
    for (const waitings of this.#ofLicense.values()) yield* waitings;
  }
}
