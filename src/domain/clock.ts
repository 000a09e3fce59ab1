/** How far the wall clock may lie beside the truth before it is called suspect, in ms. */
const toleranceMs = 10 * 60_000;
/** A jump forwards by more than this is not believed for ever until the upstream confirms it, in ms. */
const believedJumpMs = 30 * 24 * 3_600_000;

/** What the clock of the machine says at one instant. */
export type Reading = {
  /** Epoch ms; people and attackers turn it. */
  wall: number;
  /** Ms that only pass. */
  monotonic: number;
};

/**
 * What is known about the time beyond the wall clock: a base that time cannot be before, when it was
 * taken, and by how much the upstream's `Date` showed the wall clock to run ahead. Epoch ms and ms.
 */
export type TimeKeeping = { base: number; takenAt: number; aheadMs: number };

/** Starts from the mark kept in the store; null on a new one. */
export function startTimeKeeping(mark: number | null, { wall, monotonic }: Reading): TimeKeeping {
  return { base: mark ?? wall, takenAt: monotonic, aheadMs: 0 };
}

/** The time that has certainly been reached: the base and what has passed since. */
export function reachedTime({ base, takenAt }: TimeKeeping, { monotonic }: Reading): number {
  return base + monotonic - takenAt;
}

/**
 * The time by which verdicts are made: the wall clock, but never before what has certainly been reached,
 * so that turning it back wins nothing.
 */
export function currentTime(keeping: TimeKeeping, reading: Reading): number {
  return Math.max(reading.wall - keeping.aheadMs, reachedTime(keeping, reading));
}

/** Whether the wall clock runs behind what has certainly been reached, or ahead of the upstream's. */
export function isSuspect(keeping: TimeKeeping, reading: Reading): boolean {
  return keeping.aheadMs > 0 || reading.wall < reachedTime(keeping, reading) - toleranceMs;
}

/**
 * Learns from the `Date` of a parsed upstream answer: time has reached it, and a wall clock far ahead of
 * it is known to be wrong by that much. Only such an answer can take time back.
 */
export function learnDate(keeping: TimeKeeping, date: number, reading: Reading): TimeKeeping {
  const base = Math.max(date, reachedTime({ ...keeping }, reading));
  const aheadMs = reading.wall - base;
  return { base, takenAt: reading.monotonic, aheadMs: aheadMs > toleranceMs ? aheadMs : 0 };
}

/**
 * Moves the base on to the present, so that it outlives a restart as the new mark. A jump of the wall
 * clock by more than 30 days counts for verdicts but is kept out of the base until an answer confirms it.
 */
export function advanceBase(keeping: TimeKeeping, reading: Reading): TimeKeeping {
  const reached = reachedTime(keeping, reading);
  const current = currentTime(keeping, reading);
  const base = current - reached > believedJumpMs ? reached : current;
  // A wall clock that was ahead and has come back is right again.
  const aheadMs = reading.wall <= reached ? 0 : keeping.aheadMs;
  return { base, takenAt: reading.monotonic, aheadMs };
}
