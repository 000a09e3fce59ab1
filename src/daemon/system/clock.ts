import { setTimeout as sleep } from 'node:timers/promises';
import {
  acceptTime,
  unverifiedJumpMs,
  checkWall,
  confirmedTimeOf,
  hearDate,
  isSuspect,
  followWall,
  learnDate,
  markOf,
  removalTime,
  startTimeState,
  storeDifference,
  timeOf,
  type ClockReading,
  type CorrectedTime,
  type DateShift,
  type TimeState,
  type TimeMark,
} from '../../domain/clock.ts';
import type { Clock } from '../../service/ports.ts';

/** Node's timers overflow beyond this many ms. */
export const maxTimerMs: number = 2 ** 31 - 1;

/** A smaller step of the time, in ms, need not be recorded at once. */
const noticeableMs = 60_000;

/** The clocks and the sleep of a machine. */
export interface TimeSource {
  read(): ClockReading;
  /** Rejects with the signal's reason. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The clock of this process. The wall clock alone can only move it forwards (src/sync/LIMITS.md, The clock). */
export class PersistentClock implements Clock {
  readonly #source: TimeSource;
  readonly #elapsedOffset: number;
  #state: TimeState;
  #lastReading: ClockReading;
  #shifts: readonly DateShift[] = [];

  /** `mark`: the latest time in the store; null for a new store. */
  constructor(mark: TimeMark | null, source: TimeSource = machineTime) {
    this.#source = source;
    const reading = source.read();
    this.#lastReading = reading;
    this.#state = startTimeState(mark, reading);
    this.#elapsedOffset = timeOf(this.#state) - reading.monotonic;
  }

  now(): number {
    this.#correct(followWall(this.#state, this.#source.read()));
    return Math.round(timeOf(this.#state));
  }

  /** The time by which responses are dated, in epoch ms; null before the first response. */
  confirmed(): number | null {
    this.now();
    const confirmed = confirmedTimeOf(this.#state);
    return confirmed === null ? null : Math.floor(confirmed);
  }

  monotonic(): number {
    return Math.round(this.#elapsedOffset + this.#source.read().monotonic);
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    await this.#source.sleep(ms, signal);
  }

  /** How long the machine slept since the last call, in ms: only the wall clock went on. */
  sleptMs(): number {
    const before = this.#lastReading;
    const reading = this.#source.read();
    this.#lastReading = reading;
    return Math.max(0, reading.wall - before.wall - (reading.monotonic - before.monotonic));
  }

  /**
   * Learns from a signed date of the issuer, in epoch ms. Returns true if the time jumped by over 30 days: then the store
   * must record the time before anything gets that date.
   */
  learn(date: number): boolean {
    this.now();
    const before = this.#state;
    this.#state = learnDate(before, date, this.#source.read());
    return this.#state.base - before.base > unverifiedJumpMs;
  }

  /**
   * Hears the `Date` of a response of the upstream, in epoch ms; null: it has none. Returns true if the store must record
   * the time before anything is dated by it.
   */
  hear(date: number | null): boolean {
    this.now();
    const before = this.#state;
    if (date === null) {
      this.#state = acceptTime(before);
      return this.#state.undatedMs > before.undatedMs;
    }
    this.#correct(hearDate(before, date, this.#source.read()));
    return this.#shifts.length > 0 || markOf(this.#state).at - markOf(before).at > noticeableMs;
  }

  /** Looks whether the wall clock is right again. Returns true if the store must record it. */
  checkWall(): boolean {
    this.now();
    this.#correct(checkWall(this.#state, this.#source.read()));
    return this.#shifts.length > 0;
  }

  /** Whether the wall clock has jumped so far that its time is neither confirmed nor stored. */
  get isUnverified(): boolean {
    return this.#state.unverified !== null;
  }

  /** Records the time. `store` stores the mark, and corrects the stored dates after the time went back. */
  async record(store: (mark: TimeMark, shifts: readonly DateShift[]) => Promise<unknown>): Promise<void> {
    const shifts = this.#shifts;
    this.#shifts = [];
    try {
      await store(this.mark(), shifts);
    } catch (error) {
      this.#shifts = [...shifts, ...this.#shifts];
      throw error;
    }
  }

  /** The time that the store records. */
  mark(): TimeMark {
    this.now();
    return markOf(this.#state);
  }

  /** Epoch ms that have certainly passed. */
  verified(): number {
    this.now();
    return Math.round(this.#state.base);
  }

  /** Epoch ms for decisions on removing rows. `isAgent`: the time of the upstream counts as well. */
  removalTime(isAgent: boolean): number {
    this.now();
    return Math.round(removalTime(this.#state, this.#source.read(), { isAgent, lived: this.monotonic() }));
  }

  /** `storeAheadMs`: how far the upstream's clock is ahead, if several dates differ from that of this machine. */
  status(): { suspect: boolean; storeAheadMs: number | null; highWater: number } {
    const reading = this.#source.read();
    return {
      suspect: isSuspect(this.#state, reading),
      storeAheadMs: storeDifference(this.#state, reading),
      highWater: this.mark().at,
    };
  }

  #correct({ state, shifts }: CorrectedTime): void {
    this.#state = state;
    if (shifts.length > 0) this.#shifts = [...this.#shifts, ...shifts];
  }
}

/** Sleeps for `ms`. Returns early, without an error, when the signal aborts. */
export async function pause(clock: Pick<Clock, 'sleep'>, ms: number, signal: AbortSignal): Promise<void> {
  await clock.sleep(ms, signal).catch(() => undefined);
}

/** The clocks of this machine. */
export const machineTime: TimeSource = {
  read: () => ({ wall: Date.now(), monotonic: performance.now() }),
  async sleep(ms, signal) {
    await sleep(Math.min(ms, maxTimerMs), undefined, { signal });
  },
};

/** The clocks of this machine, which the sandbox and tests can put forward. Sleeps then end in time. */
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
