import { done, type Result } from '../../../domain/problem/problem.ts';
import type { Context } from '../../ports.ts';
import type { Reader, Transaction } from '../../tables.ts';

const paused = 'sync_paused';

/** Whether a person has paused sync; it stays so across restarts. */
export function isPaused(reader: Reader): boolean {
  return reader.settings.get(paused) === '1';
}

/** Remembers that a person paused sync, or let it go on, which ends every wait but fences. */
export function pauseSync(
  transaction: Transaction,
  { isPaused: value }: { isPaused: boolean },
  { steady }: Context,
): Result<null> {
  transaction.settings.set(paused, value ? '1' : '0');
  if (!value) transaction.operations.endBackoff(steady);
  return done(null);
}

/** Ends every wait in the outbox except fences: `sync now`. */
export function retryNow(
  transaction: Transaction,
  _: Record<string, never>,
  { steady }: Context,
): Result<null> {
  transaction.operations.endBackoff(steady);
  return done(null);
}
