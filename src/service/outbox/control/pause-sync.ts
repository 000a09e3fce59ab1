import { done, type Result } from '../../../domain/problem.ts';
import type { Context } from '../../ports.ts';
import type { Reader, Transaction } from '../../tables.ts';

const paused = 'sync_paused';

/** Whether a person has paused sync; it stays so across restarts. */
export function isPaused(reader: Reader): boolean {
  return reader.settings.get(paused) === '1';
}

/** Remembers that a person paused sync, or let it go on. */
export function pauseSync(
  transaction: Transaction,
  { isPaused: value }: { isPaused: boolean },
): Result<null> {
  transaction.settings.set(paused, value ? '1' : '0');
  return done(null);
}

/** Lets every lane go on at once that waits for anything but a fence. */
export function hurry(transaction: Transaction, _: Record<string, never>, { steady }: Context): Result<null> {
  transaction.operations.hurry(steady);
  return done(null);
}
