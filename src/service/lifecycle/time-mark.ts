import type { Transaction, AuthorityReader, AuthorityTransaction } from '../tables.ts';
import type { TimeMark } from '../../domain/clock.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import { minuteMs } from '../../domain/time.ts';

const highWater = 'high_water';

const unconfirmed = 'high_water_unconfirmed';

const claimed = 'high_water_claimed';

const claimedFromName = 'high_water_claimed_from';

const undated = 'high_water_undated';

export const elapsedMark = 'steady_mark';

/** The latest time that this store has seen; null for a new store. */
export async function storedTime({ settings }: AuthorityReader): Promise<TimeMark | null> {
  const mark = await settings.get(highWater);
  if (mark === null) return null;
  const from = (await settings.get(claimedFromName)) ?? '';
  return {
    at: Number(mark),
    isConfirmed: (await settings.get(unconfirmed)) !== '1',
    claimedMs: Number((await settings.get(claimed)) ?? 0),
    ...(from !== '' && { claimedFrom: Number(from) }),
    undatedMs: Number((await settings.get(undated)) ?? 0),
  };
}

/** Stores the time, so that setting the clock back does not extend anything, even after a restart. */
export async function markTime(
  transaction: AuthorityTransaction,
  { mark }: { mark: TimeMark },
  { monotonic }: Context,
): Promise<Result<null>> {
  const { settings } = transaction;
  const before = await storedTime(transaction);
  // The first time from the upstream may be before the unconfirmed time of the machine.
  if (before === null || mark.at > before.at || (mark.isConfirmed && !before.isConfirmed))
    await storeMark(transaction, mark);
  await settings.set(elapsedMark, String(monotonic));
  return done(null);
}

/** Stores a mark, also one that is before the mark in the store. */
export async function storeMark(
  { settings }: AuthorityTransaction,
  { at, isConfirmed, claimedMs = 0, claimedFrom = null, undatedMs = 0 }: TimeMark,
): Promise<void> {
  await settings.set(highWater, String(at));
  await settings.set(unconfirmed, isConfirmed ? '0' : '1');
  await settings.set(claimed, String(claimedMs));
  await settings.set(claimedFromName, String(claimedFrom ?? ''));
  await settings.set(undated, String(undatedMs));
}

const markEveryMs = minuteMs;

/**
 * Stores the date of a response (`Applied.confirmedAt`), so that after a restart the time does not go back to before
 * this date. Returns the date, which is not after the present: the clock of a Latchkey upstream may be ahead, and the
 * time may have been taken back while the response waited for room on a full disk.
 */
export function confirmTime({ settings }: Transaction, dated: number, { now }: Pick<Context, 'now'>): number {
  const confirmedAt = Math.min(dated, now);
  const mark = Number(settings.get(highWater) ?? confirmedAt);
  const isConfirmed = settings.get(unconfirmed) === '0';
  if (isConfirmed && confirmedAt <= mark + markEveryMs) return confirmedAt;
  settings.set(highWater, String(Math.max(mark, confirmedAt)));
  settings.set(unconfirmed, '0');
  return confirmedAt;
}
