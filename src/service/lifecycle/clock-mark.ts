import { done, type Result } from '../../domain/problem.ts';
import { shiftRetryAfter } from '../outbox/retry-after.ts';
import type { Context } from '../ports.ts';
import type { AuthorityReader, AuthorityTransaction, Transaction } from '../tables.ts';

const highWater = 'high_water';
const steadyMark = 'steady_mark';

/** The time (epoch ms) that this store remembers having reached; null on a new one. */
export async function rememberedTime(reader: AuthorityReader): Promise<number | null> {
  const mark = await reader.settings.get(highWater);
  return mark === null ? null : Number(mark);
}

/** Remembers the time reached, so that turning the clock back wins nothing after a restart either. */
export async function markTime(
  transaction: AuthorityTransaction,
  { mark }: { mark: number },
  { steady }: Context,
): Promise<Result<null>> {
  const before = await rememberedTime(transaction);
  if (before === null || mark > before) await transaction.settings.set(highWater, String(mark));
  await transaction.settings.set(steadyMark, String(steady));
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
