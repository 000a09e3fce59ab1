import { done, type Result } from '../../../domain/problem/problem.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';

/** Lets every lane that an outage had made wait go on: the upstream answers again. */
export function endOutage(
  transaction: Transaction,
  _: Record<string, never>,
  { steady }: Context,
): Result<null> {
  transaction.operations.endOutage(steady);
  return done(null);
}
