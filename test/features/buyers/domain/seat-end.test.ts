import { expect, test } from 'vitest';
import { seatEnd } from '../../../../src/features/buyers/domain/seat-end.ts';
import { dayMs } from '../../../../src/domain/time.ts';
import { buildActivation } from '../../leases/support/activation-builders.ts';

const now = 1_800_000_000_000;
const renewed = (daysAgo: number) =>
  buildActivation({
    state: 'active',
    renewedAt: now - daysAgo * dayMs,
    expiresAt: now + (30 - daysAgo) * dayMs,
    seatUntil: now + (120 - daysAgo) * dayMs,
    movedAt: [],
  });

test.each([
  ['renewed its lease today', renewed(0), 0, { kind: 'in_use', from: now + dayMs }],
  ['has missed a renewal', renewed(2), 2, { kind: 'freed', isMove: true }],
  [
    'has missed a renewal, and no move is left',
    renewed(2),
    3,
    { kind: 'no_move_left', from: now + 28 * dayMs },
  ],
  ['has no lease any more, and no move is left', renewed(31), 3, { kind: 'freed', isMove: false }],
  ['loses its lease at this instant', renewed(30), 0, { kind: 'freed', isMove: false }],
])('the seat of a device that %s', (_, activation, moves, expected) => {
  expect(seatEnd(activation, { refreshMs: dayMs, moves, now })).toMatchObject(expected);
});
