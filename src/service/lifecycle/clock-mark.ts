import { done, type Result } from '../../domain/problem.ts';
import { shiftRetryAfter } from '../outbox/retry-after.ts';
import type { Context } from '../ports.ts';
import type { Reader, Transaction } from '../tables.ts';

const highWater = 'high_water';
const steadyMark = 'steady_mark';

/** The time (epoch ms) that this store remembers having reached; null on a new one. */
export function rememberedTime(reader: Reader): number | null {
  const mark = reader.settings.get(highWater);
  return mark === null ? null : Number(mark);
}

/** Remembers the time reached, so that turning the clock back wins nothing after a restart either. */
export function markTime(
  transaction: Transaction,
  { mark }: { mark: number },
  { steady }: Context,
): Result<null> {
  const before = rememberedTime(transaction);
  if (before === null || mark > before) transaction.settings.set(highWater, String(mark));
  transaction.settings.set(steadyMark, String(steady));
  return done(null);
}

/**
 * Waits are kept by `Clock.steady`, which begins anew with each start. Where it begins earlier than it had
 * come to, because the wall clock was turned back meanwhile, they are moved along with it.
 */
export function resumeWaits(transaction: Transaction, steady: number): void {
  const before = Number(transaction.settings.get(steadyMark) ?? 0);
  transaction.settings.set(steadyMark, String(steady));
  if (before <= steady) return;
  transaction.operations.shiftWaits(steady - before);
  transaction.observations.shiftRefreshes(steady - before);
  shiftRetryAfter(transaction, steady - before);
}
