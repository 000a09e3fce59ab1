import { done, type Result } from '../../domain/problem/problem.ts';
import { makeAllUncertain } from '../outbox/restart.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';

/** The new instance, and how many operations have to be read back. */
export type RestoredStore = { instance: string; unfinished: number };

/** Gives a restored copy an instance of its own, and makes its unfinished operations uncertain. */
export function restore(
  transaction: Transaction,
  _: Record<string, never>,
  { now, random }: Context,
): Result<RestoredStore> {
  const instance = random.uuid(now);
  transaction.settings.set('instance', instance);
  makeAllUncertain(transaction);
  return done({ instance, unfinished: transaction.operations.unfinished() });
}
