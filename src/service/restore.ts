import { done, type Result } from '../domain/problem.ts';
import { doubtAll } from './doubt.ts';
import type { Context } from './ports.ts';
import type { Transaction } from './tables.ts';

/** Makes a restored copy a store of its own: a new instance, in which no unfinished operation is certain. */
export function restore(
  transaction: Transaction,
  _: Record<string, never>,
  { now, random }: Context,
): Result<{ instance: string }> {
  const instance = random.uuid(now);
  transaction.settings.set('instance', instance);
  doubtAll(transaction);
  return done({ instance });
}
