/** How far the wall clock may lie beside the truth before it is called suspect, in ms. */
const toleranceMs = 10 * 60_000;
/**
 * A jump forwards by more than this, in ms, is believed only when it is confirmed: one of the wall clock by the
 * upstream, one of the upstream's `Date` by the next `Date`.
 */
export const unverifiedJumpMs: number = 30 * 24 * 3_600_000;

/** What the clocks of the machine say at one instant. */
export type ClockReading = {
  /** Epoch ms; people and attackers turn it. */
  wall: number;
  /** Ms that only pass. */
  monotonic: number;
};

/** What is known about the time beyond the wall clock, as of `takenAt` (monotonic ms). */
export type TimeKeeping = {
  takenAt: number;
  /** Epoch ms that have certainly been reached: what the store remembers. */
  base: number;
  /** A time shown by a jump too far to be believed: it counts, but is not remembered. Epoch ms, or null. */
  unverified: number | null;
  /** By how much the upstream's `Date` showed the wall clock to run ahead, in ms. */
  aheadMs: number;
  /** Whether anything but the wall clock of this machine has ever said what time it is. */
  isConfirmed: boolean;
  /** The upstream's last `Date` since the start and the time passed after it, in epoch ms; null: none yet. */
  upstream: number | null;
  /** A `Date` too far ahead to be believed, less the monotonic time at which it came; null: the last one was not. */
  doubted: number | null;
};

/** The time that a store remembers having reached, in epoch ms. */
export type TimeMark = { at: number; isConfirmed: boolean };

/** Starts from the mark kept in the store; null on a new one. */
export function startTimeKeeping(mark: TimeMark | null, reading: ClockReading): TimeKeeping {
  const start: TimeKeeping = {
    takenAt: reading.monotonic,
    base: mark?.at ?? reading.wall,
    unverified: null,
    aheadMs: 0,
    isConfirmed: mark?.isConfirmed ?? false,
    upstream: null,
    doubted: null,
  };
  return keepTime(start, reading);
}

/**
 * Moves on to the present: to the wall clock, but never to before what has been reached or shown, so that
 * turning it back wins nothing. A jump forwards by more than 30 days counts from now on, but stays out of
 * the base until an answer confirms it.
 */
export function keepTime(keeping: TimeKeeping, { wall, monotonic }: ClockReading): TimeKeeping {
  const passed = monotonic - keeping.takenAt;
  const reached = keeping.base + passed;
  const shown = Math.max(wall - keeping.aheadMs, reached, (keeping.unverified ?? 0) + passed);
  const isVerified = shown - reached <= unverifiedJumpMs;
  return {
    ...keeping,
    takenAt: monotonic,
    base: isVerified ? shown : reached,
    unverified: isVerified ? null : shown,
    // A wall clock that was ahead and has come back is right again.
    aheadMs: wall <= reached ? 0 : keeping.aheadMs,
    upstream: keeping.upstream === null ? null : keeping.upstream + passed,
  };
}

/** The time by which verdicts are made, as of the last `keepTime`. */
export function timeOf({ base, unverified }: TimeKeeping): number {
  return unverified ?? base;
}

/**
 * Learns from the `Date` of a parsed upstream answer: time has reached it, and a wall clock far ahead of
 * it is known to be wrong by that much. Only such an answer takes time back: a jump that was not believed, and
 * whatever the wall clock showed before the first answer of all, when it may have been ahead from the start.
 *
 * One `Date` that is more than 30 days ahead changes nothing, since nothing could take it back; a second one that
 * agrees with it is believed.
 */
export function learnDate(
  keeping: TimeKeeping,
  date: number,
  { wall, monotonic }: ClockReading,
): TimeKeeping {
  const kept = keepTime(keeping, { wall, monotonic });
  const doubted = date - monotonic;
  const isSecond = keeping.doubted !== null && Math.abs(doubted - keeping.doubted) <= toleranceMs;
  // The answer is dated by the time that was certain before it, so that no later Date may take back that time.
  if (date - timeOf(kept) > unverifiedJumpMs && !isSecond) return { ...kept, doubted, isConfirmed: true };
  const base = keeping.isConfirmed ? Math.max(date, keeping.base + monotonic - keeping.takenAt) : date;
  const aheadMs = wall - base;
  return {
    takenAt: monotonic,
    base,
    unverified: null,
    aheadMs: aheadMs > toleranceMs ? aheadMs : 0,
    isConfirmed: true,
    upstream: date,
    doubted: null,
  };
}

/**
 * Confirms the time as it is kept, a jump included, because an answer without a `Date` is dated by this time: a later
 * `Date` that took the time back would leave the verdict in the future.
 */
export function acceptTime(keeping: TimeKeeping): TimeKeeping {
  return { ...keeping, base: timeOf(keeping), unverified: null, isConfirmed: true };
}

/** The time that no later answer takes back; null while only the wall clock has said what time it is. */
export function confirmedTimeOf({ base, isConfirmed }: TimeKeeping): number | null {
  return isConfirmed ? base : null;
}

/**
 * The time by which what was kept for long enough is removed, as of the last `keepTime`. One wrong clock must not have
 * anything removed too early: neither one that ran ahead, since the time kept is never taken back, nor one that was
 * behind, since what was kept by it looks too old once it is set right. So the earliest counts: of the time kept, of the
 * wall clock, of the time passed since the start (`lived`: `Clock.elapsed`) and, on an agent, of what the upstream says.
 * It is at most 30 days behind the time kept, or a wall clock that stays wrong would have all kept for good.
 */
export function removalTime(
  { base, upstream }: TimeKeeping,
  { wall }: ClockReading,
  { isAgent, lived }: { isAgent: boolean; lived: number },
): number {
  const earliest = Math.min(base, wall, lived, isAgent ? (upstream ?? 0) : base);
  return Math.max(earliest, base - unverifiedJumpMs);
}

/** Whether the wall clock is known, or must be feared, to be wrong by more than 10 minutes. */
export function isSuspect(
  { base, unverified, aheadMs, doubted }: TimeKeeping,
  { wall }: ClockReading,
): boolean {
  return unverified !== null || aheadMs > 0 || doubted !== null || wall < base - toleranceMs;
}
