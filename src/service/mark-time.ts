import { done, type Result } from '../domain/problem.ts';
import type { Reader, Transaction } from './tables.ts';

const highWater = 'high_water';

/** The time (epoch ms) that this store remembers having reached; null on a new one. */
export function rememberedTime(reader: Reader): number | null {
  const mark = reader.settings.get(highWater);
  return mark === null ? null : Number(mark);
}

/** Remembers the time reached, so that turning the clock back wins nothing after a restart either. */
export function markTime(transaction: Transaction, { mark }: { mark: number }): Result<null> {
  const before = rememberedTime(transaction);
  if (before === null || mark > before) transaction.settings.set(highWater, String(mark));
  return done(null);
}
