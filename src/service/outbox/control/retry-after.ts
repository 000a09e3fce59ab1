import { done, type Result } from '../../../domain/problem/problem.ts';
import type { Reader, Transaction } from '../../tables.ts';

const setting = 'retry_after_until';

/** Until when the upstream asked for quiet (`Retry-After`), by `Clock.steady`; 0 when it never did. */
export function retryAfterUntil(reader: Reader): number {
  return Number(reader.settings.get(setting) ?? 0);
}

/** Remembers across restarts until when the upstream asked for quiet; the longest wait holds. */
export function keepRetryAfter(transaction: Transaction, { until }: { until: number }): Result<null> {
  if (until > retryAfterUntil(transaction)) transaction.settings.set(setting, String(until));
  return done(null);
}

/** Moves the wait when `Clock.steady` has begun anew. */
export function shiftRetryAfter(transaction: Transaction, byMs: number): void {
  const until = retryAfterUntil(transaction);
  if (until > 0) transaction.settings.set(setting, String(until + byMs));
}

/** Another upstream has asked for nothing yet. */
export function forgetRetryAfter({ settings }: Transaction): void {
  settings.set(setting, '0');
}
