import type { DateShift, TimeMark } from '../../domain/clock.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { shiftMirroredDates } from '../agent/mirror.ts';
import type { Transaction } from '../tables.ts';
import { storeMark } from './time-mark.ts';

/** Stores a time that was taken back. What was dated by the wrong time goes back with it. (src/sync/LIMITS.md, The clock) */
export async function correctDates(
  transaction: Transaction,
  { mark, shifts }: { mark: TimeMark; shifts: readonly DateShift[] },
): Promise<Result<null>> {
  for (const shift of shifts) {
    transaction.snapshots.shiftDates(shift);
    transaction.follows.shiftDates(shift);
    shiftMirroredDates(transaction, shift);
  }
  await storeMark(transaction, mark);
  return done(null);
}
