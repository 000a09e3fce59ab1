import type { Applied } from '../../domain/outbox/outcome.ts';
import type { Result } from '../../domain/problem/problem.ts';
import { observeEpoch } from '../outbox/upstream/change.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { storeCoupons, type MirrorCoupons } from './mirror.ts';

/** `upstream`: who has answered; null: a cache. */
type AnsweredCoupons = MirrorCoupons & { upstream?: Pick<Applied<unknown>, 'epoch' | 'instance'> | null };

/** Stores coupons that the upstream sent. The answer also shows whether the upstream is a Latchkey. */
export function mirrorCoupons(
  transaction: Transaction,
  { upstream = null, ...command }: AnsweredCoupons,
  context: Context,
): Result<null> {
  if (upstream !== null) observeEpoch(transaction, upstream, context);
  return storeCoupons(transaction, command, context);
}
