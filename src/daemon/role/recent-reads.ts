import { LRUCache } from 'lru-cache';
import type { Clock } from '../../service/ports.ts';
import type { Awaitable } from '../../service/tables.ts';

/** How old what is remembered may be, in ms: notices may be lost, and a copy must not go on for longer than this. */
const longestMs = 1_000;
/** How many are remembered: those that were asked for last. */
const most = 10_000;

type Recent<Value> = { promise: Promise<Value | null>; now: number; steady: number };

/**
 * What was read within the last second, of which other copies may change something: it lives from the moment in which
 * its read began, so that none is older than that, whoever shares it (src/store/postgres/README.md, Remembering).
 */
export class RecentReads<Value> {
  readonly #recent = new LRUCache<string, Recent<Value>>({ max: most });
  readonly #clock: Pick<Clock, 'now' | 'steady'>;

  constructor(clock: Pick<Clock, 'now' | 'steady'>) {
    this.#clock = clock;
  }

  /** Gives what was read under a name, or reads it; that there is none is not remembered. */
  async read(name: string, readNow: () => Awaitable<Value | null>): Promise<Value | null> {
    // A machine that slept may have had only one of its clocks go on.
    const now = this.#clock.now();
    const steady = this.#clock.steady();
    const known = this.#recent.get(name);
    if (known !== undefined && now - known.now < longestMs && steady - known.steady < longestMs) {
      return await known.promise;
    }
    const recent = { promise: Promise.resolve(readNow()), now, steady };
    this.#recent.set(name, recent);
    let value: Value | null = null;
    try {
      value = await recent.promise;
    } finally {
      if (value === null && this.#recent.get(name) === recent) this.#recent.delete(name);
    }
    return value;
  }

  /** Forgets everything, also what is being read now. */
  forget(): void {
    this.#recent.clear();
  }
}
