import { maxMoves, movesWithinMs, type Activation, type NoticeState } from './lease.ts';

/*
 * Seats of a license. The number of unexpired leases is at most the number of seats plus the moves, because each move
 * frees the seat of one device that could have kept its lease. Times are epoch ms.
 */

export function hasSeat({ seatUntil }: Pick<Activation, 'seatUntil'>, now: number): boolean {
  return seatUntil > now;
}

/**
 * Frees the seat of an activation. `moves`: how many seats of the license were freed at once within `movesWithinMs`.
 *
 * - The last lease of the device has expired: the seat is free at once, and this is no move.
 * - A move is left: the seat is free at once.
 * - No move is left: the seat is free when the last lease of the device expires.
 */
export function freeSeat(activation: Activation, { moves, now }: { moves: number; now: number }): Activation {
  const { seatUntil, expiresAt, movedAt } = activation;
  if (!hasSeat(activation, now)) return activation;
  if (expiresAt <= now) return { ...activation, seatUntil: now };
  if (moves >= maxMoves) return { ...activation, seatUntil: Math.min(seatUntil, expiresAt) };
  const recent = movedAt.filter((at) => at > now - movesWithinMs);
  return { ...activation, seatUntil: now, movedAt: [...recent, now] };
}

/** Ends an active activation. Another state stays: a blocked device is still blocked after `end`. */
export function endAs(activation: Activation, state: Exclude<NoticeState, 'disabled'>): Activation {
  return activation.state === 'active' || state === 'blocked' ? { ...activation, state } : activation;
}

/**
 * Whether the device has renewed its lease so recently that another device must not take over its seat: within
 * `refreshMs`, and at most within the first half of a short lease.
 */
export function isInUse(
  activation: Activation,
  { refreshMs, now }: { refreshMs: number; now: number },
): boolean {
  return activation.state === 'active' && now < inUseUntil(activation, refreshMs);
}

/** From when another device may take over the seat (epoch ms), unless the lease is renewed before. */
export function inUseUntil(
  { renewedAt, expiresAt }: Pick<Activation, 'renewedAt' | 'expiresAt'>,
  refreshMs: number,
): number {
  return renewedAt + Math.min(refreshMs, (expiresAt - renewedAt) / 2);
}

/** So many answered challenges within one lease term show that two copies of a device's state are in use. */
const challengesOfCopies = 3;

/**
 * Notes that a challenge was answered. One interruption is a lost or restored state; several within one lease term are
 * two copies that alternate.
 */
export function noteChallenge(
  activation: Activation,
  { termMs, now }: { termMs: number; now: number },
): Activation {
  const challengedAt = [...activation.challengedAt, now].slice(-challengesOfCopies);
  const [first = now] = challengedAt;
  const isCopied = challengedAt.length === challengesOfCopies && now - first <= termMs;
  return { ...activation, challengedAt, copiedAt: activation.copiedAt ?? (isCopied ? now : null) };
}
