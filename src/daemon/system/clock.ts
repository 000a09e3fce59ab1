import { setTimeout as sleep } from 'node:timers/promises';
import {
  acceptTime,
  unverifiedJumpMs,
  confirmedTimeOf,
  isSuspect,
  keepTime,
  learnDate,
  removalTime,
  startTimeKeeping,
  timeOf,
  type ClockReading,
  type TimeKeeping,
  type TimeMark,
} from '../../domain/clock.ts';
import type { Clock } from '../../service/ports.ts';

/** Node's timers overflow beyond this many ms. */
export const longestTimerMs: number = 2 ** 31 - 1;

/** What the clocks of a machine show, and how it waits. */
export interface TimeSource {
  read(): ClockReading;
  /** Rejects with the signal's reason. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The clock of this process, which the wall clock can only move forwards (src/sync/README.md, The clock). */
export class PersistentClock implements Clock {
  readonly #source: TimeSource;
  readonly #elapsedOffset: number;
  #keeping: TimeKeeping;
  #lastReading: ClockReading;

  /** `mark`: what the store remembers having reached; null on a new one. */
  constructor(mark: TimeMark | null, source: TimeSource = machineTime) {
    this.#source = source;
    const reading = source.read();
    this.#lastReading = reading;
    this.#keeping = startTimeKeeping(mark, reading);
    this.#elapsedOffset = timeOf(this.#keeping) - reading.monotonic;
  }

  now(): number {
    this.#keeping = keepTime(this.#keeping, this.#source.read());
    return Math.round(timeOf(this.#keeping));
  }

  /** Epoch ms that no later answer of the upstream takes back; null before its first answer. */
  confirmed(): number | null {
    this.now();
    const confirmed = confirmedTimeOf(this.#keeping);
    return confirmed === null ? null : Math.floor(confirmed);
  }

  elapsed(): number {
    return Math.round(this.#elapsedOffset + this.#source.read().monotonic);
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    await this.#source.sleep(ms, signal);
  }

  /** For how long the machine slept since the last call, in ms: the wall clock went on, the other stood still. */
  sleptMs(): number {
    const before = this.#lastReading;
    const reading = this.#source.read();
    this.#lastReading = reading;
    return Math.max(0, reading.wall - before.wall - (reading.monotonic - before.monotonic));
  }

  /**
   * Learns from the `Date` of a parsed answer of the upstream, in epoch ms; null when it has none. Returns whether the
   * time jumped so far ahead that the store must remember it before anything is dated by it.
   */
  learn(date: number | null): boolean {
    this.now();
    const before = this.#keeping;
    this.#keeping = date === null ? acceptTime(before) : learnDate(before, date, this.#source.read());
    return this.#keeping.base - before.base > unverifiedJumpMs;
  }

  /** What the store is to remember as reached. */
  mark(): TimeMark {
    this.now();
    const { base, isConfirmed } = this.#keeping;
    return { at: Math.round(base), isConfirmed };
  }

  /** Epoch ms that have certainly been reached. */
  verified(): number {
    return this.mark().at;
  }

  /** Epoch ms by which what was kept for long enough is removed. `isAgent`: the upstream has a say. */
  removalTime(isAgent: boolean): number {
    this.now();
    return Math.round(removalTime(this.#keeping, this.#source.read(), { isAgent, lived: this.elapsed() }));
  }

  status(): { suspect: boolean; highWater: number } {
    return { suspect: isSuspect(this.#keeping, this.#source.read()), highWater: this.mark().at };
  }
}

/** The clocks of this machine. */
export const machineTime: TimeSource = {
  read: () => ({ wall: Date.now(), monotonic: performance.now() }),
  async sleep(ms, signal) {
    await sleep(Math.min(ms, longestTimerMs), undefined, { signal });
  },
};
