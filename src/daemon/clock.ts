import {
  advanceBase,
  currentTime,
  isSuspect,
  learnDate,
  startTimeKeeping,
  type Reading,
  type TimeKeeping,
} from '../domain/clock.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../service/ports.ts';

/** Node's timers overflow beyond this many ms. */
const longestTimerMs = 2 ** 31 - 1;

/** The clock of this process, which the wall clock can only move forwards (sync design, section 6). */
export class KeptClock implements Clock {
  readonly #read: () => Reading;
  readonly #steadyOffset: number;
  #keeping: TimeKeeping;

  /** `mark`: epoch ms that the store remembers having reached; null on a new one. */
  constructor(mark: number | null, read: () => Reading = readSystem) {
    this.#read = read;
    const reading = read();
    this.#keeping = startTimeKeeping(mark, reading);
    this.#steadyOffset = currentTime(this.#keeping, reading) - reading.monotonic;
  }

  now(): number {
    return Math.round(currentTime(this.#keeping, this.#read()));
  }

  steady(): number {
    return Math.round(this.#steadyOffset + this.#read().monotonic);
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(Math.min(ms, longestTimerMs), undefined, { signal });
  }

  /** Learns from the `Date` of a parsed answer of the upstream, in epoch ms. */
  learn(date: number): void {
    this.#keeping = learnDate(this.#keeping, date, this.#read());
  }

  /** Moves the base on; gives the mark for the store to remember, in epoch ms. */
  mark(): number {
    this.#keeping = advanceBase(this.#keeping, this.#read());
    return Math.round(this.#keeping.base);
  }

  status(): { suspect: boolean; highWater: number } {
    return {
      suspect: isSuspect(this.#keeping, this.#read()),
      highWater: Math.round(this.#keeping.base),
    };
  }
}

function readSystem(): Reading {
  return { wall: Date.now(), monotonic: performance.now() };
}
