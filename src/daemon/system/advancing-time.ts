import type { ClockReading } from '../../domain/clock.ts';
import { machineTime, type TimeSource } from './machine.ts';

/** The clocks of this machine, which can be put forward. Sleeps then end in time. */
export class AdvancingTime implements TimeSource {
  #aheadMs: number;
  readonly #sleepers: Set<() => void> = new Set();

  /** `aheadMs`: negative to begin in the past. */
  constructor(aheadMs: number = 0) {
    this.#aheadMs = aheadMs;
  }

  read(): ClockReading {
    const { wall, monotonic } = machineTime.read();
    return { wall: wall + this.#aheadMs, monotonic: monotonic + this.#aheadMs };
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    const wakesAt = this.read().monotonic + ms;
    for (let left = ms; left > 0; left = wakesAt - this.read().monotonic) {
      const { promise: advanced, resolve } = Promise.withResolvers<void>();
      const waiting = new AbortController();
      this.#sleepers.add(resolve);
      try {
        const ending = AbortSignal.any([signal, waiting.signal]);
        await Promise.race([advanced, machineTime.sleep(left, ending)]);
      } finally {
        this.#sleepers.delete(resolve);
        waiting.abort();
      }
    }
  }

  advance(ms: number): void {
    this.#aheadMs += ms;
    for (const wake of this.#sleepers) wake();
  }
}
