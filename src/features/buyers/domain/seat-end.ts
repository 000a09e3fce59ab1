import type { Activation } from '../../leases/domain/lease.ts';
import { endAs, freeSeat, hasSeat, inUseUntil, isInUse } from '../../leases/domain/lease-rules.ts';

/**
 * What happens if a buyer frees the seat of a device. `from`: when it can be freed (epoch ms), unless its lease is renewed
 * before. `isMove`: it counts as one of the moves of the license.
 */
export type SeatEnd =
  | { kind: 'in_use'; from: number }
  | { kind: 'no_move_left'; from: number }
  | { kind: 'freed'; isMove: boolean; after: Activation };

/** The rules are those of a device that takes over a seat. `moves`: how many seats were freed at once lately. */
export function seatEnd(
  activation: Activation,
  { refreshMs, moves, now }: { refreshMs: number; moves: number; now: number },
): SeatEnd {
  if (isInUse(activation, { refreshMs, now }))
    return { kind: 'in_use', from: inUseUntil(activation, refreshMs) };
  const after = endAs(freeSeat(activation, { moves, now }), 'ended');
  return hasSeat(after, now)
    ? { kind: 'no_move_left', from: after.seatUntil }
    : { kind: 'freed', isMove: activation.expiresAt > now, after };
}
