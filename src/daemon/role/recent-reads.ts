import { LRUCache } from 'lru-cache';
import type { Clock } from '../../service/ports.ts';
import type { Awaitable } from '../../service/tables.ts';

/** How old what is remembered may be, in ms: notices may be lost, and a copy must not go on for longer than this. */
const longestMs = 1_000;
/** How many are remembered: those that were asked for last. */
const most = 10_000;

/** `value`: null until it is read. */
type Recent<Value> = { promise: Promise<Value | null>; value: Value | null; now: number; elapsed: number };

/**
 * What was read within the last second, of which other copies may change something: it lives from the moment in which
 * its read began, so that none is older than that, whoever shares it (src/store/postgres/README.md, Remembering).
 */
export class RecentReads<Value> {
  readonly #recent = new LRUCache<string, Recent<Value>>({ max: most });
  readonly #clock: Pick<Clock, 'now' | 'elapsed'>;

  constructor(clock: Pick<Clock, 'now' | 'elapsed'>) {
    this.#clock = clock;
  }

  /** Gives what was read under a name, or reads it; that there is none is not remembered. */
  async read(name: string, readNow: () => Awaitable<Value | null>): Promise<Value | null> {
    const now = this.#clock.now();
    const elapsed = this.#clock.elapsed();
    const known = this.#at(name, now, elapsed);
    if (known !== undefined) return await known.promise;
    const recent: Recent<Value> = { promise: Promise.resolve(readNow()), value: null, now, elapsed };
    this.#recent.set(name, recent);
    try {
      recent.value = await recent.promise;
    } finally {
      if (recent.value === null && this.#recent.get(name) === recent) this.#recent.delete(name);
    }
    return recent.value;
  }

  /** Gives what `read` would give without reading; null: it would read, or wait. */
  recall(name: string): Value | null {
    return this.#at(name, this.#clock.now(), this.#clock.elapsed())?.value ?? null;
  }

  #at(name: string, now: number, elapsed: number): Recent<Value> | undefined {
    const known = this.#recent.get(name);
    // A machine that slept may have had only one of its clocks go on.
    const isRecent =
      known !== undefined && now - known.now < longestMs && elapsed - known.elapsed < longestMs;
    return isRecent ? known : undefined;
  }

  /** Forgets everything, also what is being read now. */
  forget(): void {
    this.#recent.clear();
  }
}
