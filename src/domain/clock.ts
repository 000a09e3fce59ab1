import { dayMs, minuteMs } from './time.ts';

/** The error of the wall clock, in ms, from which it counts as suspect. */
const toleranceMs = 10 * minuteMs;
/** A longer jump of the wall clock forwards, in ms, must be confirmed. */
export const unverifiedJumpMs: number = 30 * dayMs;

/** So many dates of the store, over so long, must contradict the wall clock before the machine is suspect. */
const disputeDates = 3;
const disputeMs = 10 * minuteMs;

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
  /** The time that the machine itself, or a signed date, has reached, in epoch ms. The store remembers it. */
  base: number;
  /** The time after a jump that is not confirmed: verdicts use it, but the store does not remember it. Epoch ms, or null. */
  unverified: number | null;
  /**
   * A later time than `base`, in epoch ms, which the upstream's `Date` said while the wall clock was not credible; null:
   * none. Later dates take it back.
   */
  claimed: number | null;
  /** The time when the upstream's `Date` began to be ahead of `base`, in epoch ms; null: not known, or never. */
  claimedFrom: number | null;
  /** How far the wall clock is ahead of the upstream's `Date`, in ms. */
  aheadMs: number;
  /** Whether the time was ever confirmed by a source other than the wall clock of this machine. */
  isConfirmed: boolean;
  /** The longest jump of the wall clock forwards since a `Date` agreed with it, in ms. */
  jumpedMs: number;
  /** The same jump, if a response without a `Date` was dated after it. */
  undatedMs: number;
  /** The upstream's last `Date` since the start plus the time since then, in epoch ms; null: none yet. */
  upstream: number | null;
  /** The last signed date, minus the monotonic time of its arrival, if it was too far ahead to be accepted; otherwise null. */
  unverifiedDate: number | null;
  /** What the upstream's latest dates say against the wall clock; null: they agree, or there are none. */
  dispute: Dispute | null;
};

/** `offset`: the last `Date` minus the monotonic time of its arrival. `since`, `last`: of the first and the last date. */
type Dispute = { offset: number; count: number; since: number; last: number };

/**
 * The time in the store, in epoch ms. `claimedMs`: the part of `at` that only the upstream's `Date` has claimed.
 * `claimedFrom`, `undatedMs`: as in `TimeState`.
 */
export type TimeMark = {
  at: number;
  isConfirmed: boolean;
  claimedMs?: number;
  claimedFrom?: number | null;
  undatedMs?: number;
};

/**
 * A correction of stored dates after the time was corrected: those after `after` (epoch ms; null: all), and not after
 * `until` (absent: all), lie `byMs` earlier, or later if `byMs` is negative.
 */
export type DateShift = { after: number | null; until?: number; byMs: number };

/** The time after a date of the upstream or a look at the wall clock, and the stored dates that go back with it. */
export type CorrectedTime = { state: TimeState; shifts: readonly DateShift[] };

/** `mark`: the mark in the store; null in a new store. */
export function startTimeState(mark: TimeMark | null, reading: ClockReading): TimeState {
  const {
    at = reading.wall,
    isConfirmed = false,
    claimedMs = 0,
    claimedFrom = null,
    undatedMs = 0,
  } = mark ?? {};
  const start: TimeState = {
    takenAt: reading.monotonic,
    base: at - claimedMs,
    unverified: null,
    claimed: claimedMs > 0 ? at : null,
    claimedFrom,
    aheadMs: 0,
    isConfirmed,
    jumpedMs: 0,
    undatedMs,
    upstream: null,
    unverifiedDate: null,
    dispute: null,
  };
  return advanceTime(start, reading);
}

/** The mark to store. A jump that is not confirmed is left out. */
export function markOf(state: TimeState): TimeMark {
  const at = Math.round(Math.max(state.base, state.claimed ?? 0));
  const claimedMs = Math.max(0, at - Math.round(state.base));
  const { isConfirmed, claimedFrom } = state;
  const from = claimedMs > 0 && claimedFrom !== null ? { claimedFrom: Math.round(claimedFrom) } : {};
  return { at, isConfirmed, claimedMs, ...from, undatedMs: Math.round(state.undatedMs) };
}

/**
 * Moves on to the present. The time follows the wall clock but never goes back, so that setting the wall clock back
 * gains nothing. A jump forwards by more than 30 days is used for verdicts, but the base does not include it until a
 * response confirms it.
 */
export function advanceTime(before: TimeState, { wall, monotonic }: ClockReading): TimeState {
  const passed = monotonic - before.takenAt;
  const reached = before.base + passed;
  const claimed = before.claimed === null ? null : before.claimed + passed;
  const shown = Math.max(wall - before.aheadMs, reached, (before.unverified ?? 0) + passed);
  const isVerified = shown - Math.max(reached, claimed ?? 0) <= unverifiedJumpMs;
  const base = isVerified ? shown : reached;
  return {
    ...before,
    takenAt: monotonic,
    base,
    unverified: isVerified ? null : shown,
    claimed: claimed !== null && claimed > base ? claimed : null,
    // The wall clock was ahead and has been corrected.
    aheadMs: wall <= reached ? 0 : before.aheadMs,
    jumpedMs: base - reached > toleranceMs ? Math.max(before.jumpedMs, base - reached) : before.jumpedMs,
    upstream: before.upstream === null ? null : before.upstream + passed,
  };
}

/**
 * Moves on to the present, like `advanceTime`. If the wall clock was behind, and now shows what the upstream's dates have
 * said, then these dates were right: what was dated since the first of them is dated later by the same span. Every age
 * stays.
 */
export function followWall(before: TimeState, reading: ClockReading): CorrectedTime {
  const kept = advanceTime(before, reading);
  const { dispute } = before;
  const { wall, monotonic } = reading;
  const reached = before.base + monotonic - before.takenAt;
  const isRight =
    dispute !== null && Math.abs(dispute.offset + monotonic - wall) <= toleranceMs && before.aheadMs === 0;
  if (!isRight || wall - reached <= toleranceMs || before.claimed !== null)
    return { state: kept, shifts: [] };
  const state = { ...kept, base: wall, unverified: null, dispute: null, jumpedMs: 0 };
  const since = Math.floor(reached - (monotonic - dispute.since)) - 1;
  // What is stored before this correction may be dated by the new time.
  return { state, shifts: [{ ...shift(since, reached - wall), until: Math.ceil(reached) }] };
}

/** The time for verdicts, as of the last `advanceTime`. */
export function timeOf({ base, unverified, claimed }: TimeState): number {
  return unverified ?? claimed ?? base;
}

/**
 * Learns from a signed date of the issuer of leases: this time has been reached, and a wall clock far ahead of it is
 * wrong. It undoes a jump that was not confirmed, and, if it is the very first one, everything that the wall clock has
 * shown before.
 *
 * A single date that is more than 30 days ahead changes nothing, because nothing could undo it. A second date that
 * agrees with the first one is accepted.
 */
export function learnDate(before: TimeState, date: number, { wall, monotonic }: ClockReading): TimeState {
  const kept = advanceTime(before, { wall, monotonic });
  const unverifiedDate = date - monotonic;
  const isSecond =
    before.unverifiedDate !== null && Math.abs(unverifiedDate - before.unverifiedDate) <= toleranceMs;
  // The response is dated by the time that was certain before it, so no later Date may take back that time.
  if (date - timeOf(kept) > unverifiedJumpMs && !isSecond)
    return { ...kept, unverifiedDate, isConfirmed: true };
  const base = before.isConfirmed ? Math.max(date, before.base + monotonic - before.takenAt) : date;
  const aheadMs = wall - base;
  return {
    ...kept,
    base,
    unverified: null,
    aheadMs: aheadMs > toleranceMs ? aheadMs : 0,
    isConfirmed: true,
    upstream: date,
    unverifiedDate: null,
  };
}

/**
 * Hears the `Date` of a valid upstream response. Nobody signs it, so no date moves the time further than the machine's own
 * clock allows (src/sync/LIMITS.md, The clock).
 */
export function hearDate(before: TimeState, date: number, reading: ClockReading): CorrectedTime {
  const kept: TimeState = { ...advanceTime(before, reading), isConfirmed: true, upstream: date };
  const { wall } = reading;
  if (Math.abs(date - wall) <= toleranceMs) return agreeOn(kept, wall);
  const disputing = { ...kept, dispute: disputeAfter(kept.dispute, date, reading) };
  if (kept.unverified !== null) {
    // A single date before the time that was reached is more likely wrong than the wall clock.
    const isOdd = date < kept.base - toleranceMs && storeDifference(disputing, reading) === null;
    if (isOdd) return { state: disputing, shifts: [] };
    // The wall clock jumped, and the upstream does not confirm it.
    const aheadMs = wall - kept.base;
    const state = { ...disputing, unverified: null, aheadMs: aheadMs > toleranceMs ? aheadMs : 0 };
    return claim(state, date);
  }
  // A wall clock that is set to another credible time does not end what the same date has claimed before.
  const isClaimed = kept.claimed !== null && Math.abs(date - kept.claimed) <= toleranceMs;
  return claim(disputing, isClaimed || !isCredible(kept, reading) ? date : null);
}

/** Whether the wall clock contradicts nothing else that this machine knows: it has neither jumped nor been set back. */
function isCredible({ base, unverified, aheadMs }: TimeState, { wall }: ClockReading): boolean {
  return unverified === null && aheadMs === 0 && wall >= base - toleranceMs;
}

/** The machine and the upstream show the same time, so it is right, and jumps before it are over. */
function agreeOn(kept: TimeState, wall: number): CorrectedTime {
  const agreed = { ...kept, aheadMs: 0, unverified: null, dispute: null, jumpedMs: 0, undatedMs: 0 };
  const { state, shifts } = claim({ ...agreed, base: Math.max(kept.base, wall) }, null);
  if (kept.base <= wall + toleranceMs) return { state, shifts };
  return { state: { ...state, base: wall }, shifts: [...shifts, shift(null, kept.base - wall)] };
}

/** Makes `date` the claimed time; null: none. */
function claim(kept: TimeState, date: number | null): CorrectedTime {
  const before = kept.claimed ?? kept.base;
  const time = Math.max(kept.base, date ?? 0);
  // The dates of responses differ by the time that they travel.
  if (date !== null && time < before && before - time <= toleranceMs) return { state: kept, shifts: [] };
  const claimedFrom = kept.claimed === null ? kept.base : kept.claimedFrom;
  const state = { ...kept, claimed: time > kept.base + toleranceMs ? time : null, claimedFrom };
  const byMs = before - timeOf(state);
  // What was dated by the claimed time may be in the past by now.
  const after = Math.min(timeOf(state), kept.claimed === null ? Infinity : (claimedFrom ?? Infinity));
  return { state, shifts: byMs > 0 ? [shift(after, byMs)] : [] };
}

/** Stored dates are whole ms. The clocks of a machine are more exact. */
function shift(after: number | null, byMs: number): DateShift {
  return { after: after === null ? null : Math.round(after), byMs: Math.round(byMs) };
}

function disputeAfter(before: Dispute | null, date: number, { monotonic }: ClockReading): Dispute {
  const offset = date - monotonic;
  const isSame = before !== null && Math.abs(offset - before.offset) <= toleranceMs;
  const { since, count } = isSame ? before : { since: monotonic, count: 0 };
  return { offset, since, count: count + 1, last: monotonic };
}

/**
 * How far the upstream is ahead of the wall clock, in ms, negative if it is behind; null unless several dates over time
 * differ from the wall clock. Either of them may be wrong.
 */
export function storeDifference({ dispute }: TimeState, { wall, monotonic }: ClockReading): number | null {
  if (dispute === null || dispute.count < disputeDates || dispute.last - dispute.since < disputeMs)
    return null;
  const differenceMs = dispute.offset + monotonic - wall;
  return Math.abs(differenceMs) > toleranceMs ? differenceMs : null;
}

/**
 * Looks whether the wall clock is right again after a jump that only the wall clock has shown, but by which a response was
 * dated. Then the time and all stored dates go back with the wall clock: every age stays, so that a clock that is set back
 * gains nothing.
 */
export function checkWall(before: TimeState, reading: ClockReading): CorrectedTime {
  const kept = advanceTime(before, reading);
  const { base, unverified, claimed, undatedMs } = kept;
  const backMs = base - reading.wall;
  const isBack = backMs > toleranceMs && backMs <= undatedMs + toleranceMs;
  if (!isBack || unverified !== null || claimed !== null) return { state: kept, shifts: [] };
  const state = { ...kept, base: reading.wall, aheadMs: 0, undatedMs: 0 };
  return { state, shifts: [shift(null, backMs)] };
}

/**
 * Confirms the current time, including a jump, because a response without a `Date` is dated by this time. If a later
 * `Date` took the time back, the verdict would be in the future.
 */
export function acceptTime(before: TimeState): TimeState {
  const base = before.unverified ?? before.base;
  const undatedMs = Math.max(before.undatedMs, before.jumpedMs, base - before.base);
  return { ...before, base, unverified: null, isConfirmed: true, undatedMs, jumpedMs: 0 };
}

/** The time by which responses are dated; null while the wall clock is the only source. */
export function confirmedTimeOf({ base, claimed, isConfirmed }: TimeState): number | null {
  return isConfirmed ? (claimed ?? base) : null;
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
export function isSuspect(state: TimeState, reading: ClockReading): boolean {
  const { base, unverified, aheadMs, unverifiedDate } = state;
  const hasJumped = unverified !== null || aheadMs > 0 || reading.wall < base - toleranceMs;
  return hasJumped || unverifiedDate !== null || storeDifference(state, reading) !== null;
}

/** What is wrong with the clock. `storeAheadMs`: how far the clock of the store is ahead; null: not known. */
export function describeClock(storeAheadMs: number | null): string {
  if (storeAheadMs === null) return 'the clock of this machine has jumped or was set back';
  return `this machine and the store differ by ${describeSpan(Math.abs(storeAheadMs))}; one of the two is wrong`;
}

/** What to do about `describeClock`. */
export const clockAdvice =
  'compare this machine with another clock; if this machine is wrong, synchronize it by NTP';

/** A span in ms in the largest unit that has at least two. */
function describeSpan(ms: number): string {
  const minutes = Math.round(ms / minuteMs);
  if (minutes < 2 * 60) return `${minutes} minutes`;
  const hours = Math.round(minutes / 60);
  return hours < 2 * 24 ? `${hours} hours` : `${Math.round(hours / 24)} days`;
}
