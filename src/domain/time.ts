export const dayMs = 86_400_000;

/** The error of the wall clock, in ms, from which it counts as suspect. */
const toleranceMs = 10 * 60_000;
/**
 * A longer jump forwards, in ms, must be confirmed. The upstream confirms a jump of the wall clock. The next `Date`
 * confirms a jump of the upstream's `Date`.
 */
export const unverifiedJumpMs: number = 30 * dayMs;

/** The clocks of the machine at one instant. */
export type ClockReading = {
  /** Epoch ms. People and attackers can set this clock. */
  wall: number;
  /** Ms. This clock never jumps. */
  monotonic: number;
};

/** Knowledge about the time that does not depend on the wall clock, as of `takenAt` (monotonic ms). */
export type TimeState = {
  takenAt: number;
  /** A time that has certainly been reached, in epoch ms. The store remembers it. */
  base: number;
  /** The time after a jump that is not confirmed: verdicts use it, but the store does not remember it. Epoch ms, or null. */
  unverified: number | null;
  /** How far the wall clock is ahead of the upstream's `Date`, in ms. */
  aheadMs: number;
  /** Whether the time was ever confirmed by a source other than the wall clock of this machine. */
  isConfirmed: boolean;
  /** The upstream's last `Date` since the start plus the time since then, in epoch ms; null: none yet. */
  upstream: number | null;
  /** The last `Date`, minus the monotonic time of its arrival, if it was too far ahead to be accepted; otherwise null. */
  unverifiedDate: number | null;
};

/** The time in the store, in epoch ms. */
export type TimeMark = { at: number; isConfirmed: boolean };

/** `mark`: the mark in the store; null in a new store. */
export function startTimeState(mark: TimeMark | null, reading: ClockReading): TimeState {
  const start: TimeState = {
    takenAt: reading.monotonic,
    base: mark?.at ?? reading.wall,
    unverified: null,
    aheadMs: 0,
    isConfirmed: mark?.isConfirmed ?? false,
    upstream: null,
    unverifiedDate: null,
  };
  return advanceTime(start, reading);
}

/**
 * Moves on to the present. The time follows the wall clock but never goes back, so that setting the wall clock back
 * gains nothing. A jump forwards by more than 30 days is used for verdicts, but the base does not include it until a
 * response confirms it.
 */
export function advanceTime(keeping: TimeState, { wall, monotonic }: ClockReading): TimeState {
  const passed = monotonic - keeping.takenAt;
  const reached = keeping.base + passed;
  const shown = Math.max(wall - keeping.aheadMs, reached, (keeping.unverified ?? 0) + passed);
  const isVerified = shown - reached <= unverifiedJumpMs;
  return {
    ...keeping,
    takenAt: monotonic,
    base: isVerified ? shown : reached,
    unverified: isVerified ? null : shown,
    // The wall clock was ahead and has been corrected.
    aheadMs: wall <= reached ? 0 : keeping.aheadMs,
    upstream: keeping.upstream === null ? null : keeping.upstream + passed,
  };
}

/** The time for verdicts, as of the last `advanceTime`. */
export function timeOf({ base, unverified }: TimeState): number {
  return unverified ?? base;
}

/**
 * Learns from the `Date` of a valid upstream response: this time has been reached, and a wall clock far ahead of it is
 * wrong. Only a `Date` can take the time back: it undoes a jump that was not confirmed, and, if it is the very first
 * one, everything that the wall clock has shown before.
 *
 * A single `Date` that is more than 30 days ahead changes nothing, because nothing could undo it. A second `Date` that
 * agrees with the first one is accepted.
 */
export function learnDate(keeping: TimeState, date: number, { wall, monotonic }: ClockReading): TimeState {
  const kept = advanceTime(keeping, { wall, monotonic });
  const unverifiedDate = date - monotonic;
  const isSecond =
    keeping.unverifiedDate !== null && Math.abs(unverifiedDate - keeping.unverifiedDate) <= toleranceMs;
  // The response is dated by the time that was certain before it, so no later Date may take back that time.
  if (date - timeOf(kept) > unverifiedJumpMs && !isSecond)
    return { ...kept, unverifiedDate, isConfirmed: true };
  const base = keeping.isConfirmed ? Math.max(date, keeping.base + monotonic - keeping.takenAt) : date;
  const aheadMs = wall - base;
  return {
    takenAt: monotonic,
    base,
    unverified: null,
    aheadMs: aheadMs > toleranceMs ? aheadMs : 0,
    isConfirmed: true,
    upstream: date,
    unverifiedDate: null,
  };
}

/**
 * Confirms the current time, including a jump, because a response without a `Date` is dated by this time. If a later
 * `Date` took the time back, the verdict would be in the future.
 */
export function acceptTime(keeping: TimeState): TimeState {
  return { ...keeping, base: timeOf(keeping), unverified: null, isConfirmed: true };
}

/** The time that no later response takes back; null while the wall clock is the only source. */
export function confirmedTimeOf({ base, isConfirmed }: TimeState): number | null {
  return isConfirmed ? base : null;
}

/**
 * The time for removing old records, as of the last `advanceTime`. A single wrong clock must not remove a record too
 * early. If the wall clock ran ahead, `base` stays ahead. If it was behind, records that were written then look too old
 * once it is corrected. So the earliest time counts: `base`, the wall clock, the time since the first start (`lived`:
 * `Clock.monotonic`) and, on an agent, the upstream's time. It is at most 30 days behind `base`, because otherwise nothing
 * would be removed while a wall clock stays wrong.
 */
export function removalTime(
  { base, upstream }: TimeState,
  { wall }: ClockReading,
  { isAgent, lived }: { isAgent: boolean; lived: number },
): number {
  const earliest = Math.min(base, wall, lived, isAgent ? (upstream ?? 0) : base);
  return Math.max(earliest, base - unverifiedJumpMs);
}

/** Whether the wall clock is, or may be, wrong by more than 10 minutes. */
export function isSuspect(
  { base, unverified, aheadMs, unverifiedDate }: TimeState,
  { wall }: ClockReading,
): boolean {
  return unverified !== null || aheadMs > 0 || unverifiedDate !== null || wall < base - toleranceMs;
}

const rfc3339 = /^(\d{4}-\d{2}-(\d{2}))[Tt ]((\d{2}):\d{2}:\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

/** Formats epoch ms as in the API: UTC, whole seconds, `2024-02-22T11:23:05+00:00` (RFC 3339). */
export function formatDatetime(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}+00:00`;
}

/** The years 1 to 9999, because the format has four digits for the year. */
const earliest = -62_135_596_800_000;
const latest = 253_402_300_799_999;

/** Whether `formatDatetime` can format an instant (epoch ms). */
export function isInstant(epochMs: number): boolean {
  return epochMs >= earliest && epochMs <= latest;
}

/** Parses an RFC 3339 datetime into epoch ms; null if it is malformed, or names a day or hour that does not exist. */
export function parseDatetime(text: string): number | null {
  const match = rfc3339.exec(text);
  if (match === null) return null;
  const [, day, dayOfMonth, time, hour, fraction = '', zone = 'Z'] = match;
  const asUtc = Date.parse(`${day}T${time}Z`);
  if (Number.isNaN(asUtc) || hour === '24' || !isInMonth(asUtc, Number(dayOfMonth))) return null;
  if (fraction === '' && (zone === 'Z' || zone === '+00:00')) return asUtc;
  const epochMs = Date.parse(text.toUpperCase().replace(' ', 'T'));
  return Number.isNaN(epochMs) ? null : epochMs;
}

/** `Date.parse` takes the 31st of a shorter month for the first day of the next month. */
function isInMonth(asUtc: number, dayOfMonth: number): boolean {
  return dayOfMonth <= 28 || new Date(asUtc).getUTCDate() === dayOfMonth;
}
