import { done, type Result } from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';

/** Notes that a caller asked for a key, so that the agent keeps refreshing the key. */
export function touchSnapshot(
  transaction: Transaction,
  { licenseKey }: { licenseKey: string },
  { now, elapsed }: Context,
): Result<null> {
  transaction.snapshots.touch(licenseKey, now, elapsed);
  return done(null);
}
