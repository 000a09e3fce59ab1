import type { TimeMark } from '../../domain/clock.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import type { AuthorityReader, AuthorityTransaction, Transaction } from '../tables.ts';
import { shiftRetryAfter, shiftUnknownHistory } from '../outbox/sync-marks.ts';

const highWater = 'high_water';
const unconfirmed = 'high_water_unconfirmed';
const elapsedMark = 'steady_mark';

/** The latest time that this store has seen; null on a new one. */
export async function rememberedTime({ settings }: AuthorityReader): Promise<TimeMark | null> {
  const mark = await settings.get(highWater);
  if (mark === null) return null;
  return { at: Number(mark), isConfirmed: (await settings.get(unconfirmed)) !== '1' };
}

/** Stores the time reached, so that turning the clock back gains nothing after a restart either. */
export async function markTime(
  transaction: AuthorityTransaction,
  { mark }: { mark: TimeMark },
  { elapsed }: Context,
): Promise<Result<null>> {
  const { settings } = transaction;
  const before = await rememberedTime(transaction);
  // The first time that the upstream confirms may lie before what the machine had claimed until then.
  if (before === null || mark.at > before.at || (mark.isConfirmed && !before.isConfirmed)) {
    await settings.set(highWater, String(mark.at));
    await settings.set(unconfirmed, mark.isConfirmed ? '0' : '1');
  }
  await settings.set(elapsedMark, String(elapsed));
  return done(null);
}

/**
 * Waits are kept by `Clock.elapsed`, which begins anew with each start. Where it begins earlier than it had
 * come to, because the wall clock was turned back meanwhile, they are moved along with it. Gives the instant, by
 * the new start's reckoning, that the last process is known to have reached.
 */
export function resumeWaits(transaction: Transaction, elapsed: number): number {
  const before = Number(transaction.settings.get(elapsedMark) ?? 0);
  transaction.settings.set(elapsedMark, String(elapsed));
  if (before <= elapsed) return before;
  transaction.operations.shiftWaits(elapsed - before);
  transaction.snapshots.shiftWaits(elapsed - before);
  shiftRetryAfter(transaction, elapsed - before);
  shiftUnknownHistory(transaction, elapsed - before);
  return elapsed;
}

/** The mark is written forward no more often than this, in ms. */
const markEveryMs = 60_000;

/**
 * Remembers that the time has reached the date of an answer (`Applied.confirmedAt`): after a restart no later `Date` may
 * take back the time to before this date.
 */
export function confirmTime({ settings }: Transaction, confirmedAt: number): void {
  const mark = Number(settings.get(highWater) ?? confirmedAt);
  const isConfirmed = settings.get(unconfirmed) === '0';
  if (isConfirmed && confirmedAt <= mark + markEveryMs) return;
  settings.set(highWater, String(confirmedAt));
  settings.set(unconfirmed, '0');
}
