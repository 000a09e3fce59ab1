import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
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
import { runProgram, runWindowsProgram } from '../../config/file/windows-rights.ts';
import type { Clock, Digest, Random, SameDigest } from '../../service/ports.ts';
import { minuteMs } from '../../domain/time.ts';

/** Node's timers overflow beyond this many ms. */
export const maxTimerMs: number = 2 ** 31 - 1;

/** A smaller step of the time, in ms, need not be recorded at once. */
const noticeableMs = minuteMs;

/** The clocks and the sleep of a machine. */
export interface TimeSource {
  read(): ClockReading;
  /** Rejects with the signal's reason. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The clock of this process. The wall clock alone can only move it forwards (src/sync/README.md, The clock). */
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

/** Randomness from the operating system. */
export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  uuid: (now) => formatUuid(now, nextUuidBytes()),
  fraction: () => randomInt(2 ** 32) / 2 ** 32,
};

const uuidBytes = 16;
/** Fetched for many identifiers at once: a call takes several times as long as building an identifier. */
let uuidPool = randomBytes(0);
let uuidPoolUsed = 0;

/**
 * Formats a UUID of version 7 (RFC 9562). Node's `randomUUIDv7` cannot be given a time; the package `uuid` would add 20
 * files to a start.
 */
function formatUuid(now: number, bytes: Buffer): string {
  bytes.writeUIntBE(now, 0, 6);
  // The version is in the upper half of a byte, the variant in the two upper bits of another.
  bytes[6] = 0x70 | (bytes.readUInt8(6) & 0x0f);
  bytes[8] = 0x80 | (bytes.readUInt8(8) & 0x3f);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function nextUuidBytes(): Buffer {
  if (uuidPoolUsed === uuidPool.length) {
    uuidPool = randomBytes(uuidBytes * 256);
    uuidPoolUsed = 0;
  }
  uuidPoolUsed += uuidBytes;
  return uuidPool.subarray(uuidPoolUsed - uuidBytes, uuidPoolUsed);
}

/** SHA-256 as lower-case hexadecimal. */
export const sha256: Digest = (secret) => hash('sha256', secret, 'hex');

/** Compares digests of the same length. All digests of `sha256` have the same length. */
export const isSameDigest: SameDigest = (left, right) =>
  timingSafeEqual(Buffer.from(left, 'hex'), Buffer.from(right, 'hex'));

const registryKey = String.raw`HKLM\SOFTWARE\Microsoft\Cryptography`;

type IdSource = { read: () => string; pattern: RegExp };

const unix: IdSource = { read: () => readFileSync('/etc/machine-id', 'utf8'), pattern: /^(\S*)$/ };

/** How each system shows its id, and what is the id in the text. */
const idSources: Readonly<Partial<Record<NodeJS.Platform, IdSource>>> = {
  win32: {
    read: () => runWindowsProgram('reg.exe', ['query', registryKey, '/v', 'MachineGuid', '/reg:64']),
    pattern: /\bMachineGuid {1,9}REG_SZ {1,9}([0-9a-f-]{32,36})\b/i,
  },
  darwin: {
    read: () => runProgram('/usr/sbin/ioreg', ['-rd1', '-c', 'IOPlatformExpertDevice']),
    pattern: /"IOPlatformUUID" = "([0-9A-F-]{36})"/i,
  },
};

const foundIds = new Map<NodeJS.Platform, string>();

/** An id that no other machine has; empty where the system has none, for example in a container. */
export function machineId(platform: NodeJS.Platform = process.platform): string {
  const found = foundIds.get(platform) ?? parseMachineId(platform, readIdSource(platform));
  foundIds.set(platform, found);
  return found;
}

/** Takes the id from what a system shows about itself. */
export function parseMachineId(platform: NodeJS.Platform, text: string): string {
  return (idSources[platform] ?? unix).pattern.exec(text.trim())?.[1] ?? '';
}

function readIdSource(platform: NodeJS.Platform): string {
  try {
    return (idSources[platform] ?? unix).read();
  } catch {
    return '';
  }
}
