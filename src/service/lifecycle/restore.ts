import { done, type Result } from '../../domain/problem.ts';
import { doubtAll } from '../outbox/settlement/doubt.ts';
import { unfinishedCount } from '../outbox/lane.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';

/** Which store a restored copy is, and how many of its operations are to be read back. */
export type RestoredStore = { instance: string; unfinished: number };

/** Makes a restored copy a store of its own: a new instance, in which no unfinished operation is certain. */
export function restore(
  transaction: Transaction,
  _: Record<string, never>,
  { now, random }: Context,
): Result<RestoredStore> {
  const instance = random.uuid(now);
  transaction.settings.set('instance', instance);
  doubtAll(transaction);
  return done({ instance, unfinished: unfinishedCount(transaction) });
}
