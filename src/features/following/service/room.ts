import { failWith, type Result } from '../../../domain/problem/problem.ts';
import { idleAfterMs, maxAgentsPerReach } from '../domain/follow.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';

/** How many idle followers make room at once: to find them takes a look at all agents. */
const forgottenAtOnce = 1_000;

/**
 * Whether a reach has room for another agent. A full reach forgets followers that were silent: they lose nothing, because
 * they send all their keys again.
 */
export async function hasRoom(
  { sync }: Pick<AuthorityTransaction, 'sync'>,
  reach: string,
  now: number,
  maximum: number = maxAgentsPerReach,
): Promise<boolean> {
  if ((await sync.countOfReach(reach)) < maximum) return true;
  return (await forgetIdle({ sync }, { reach, before: now - idleAfterMs, limit: forgottenAtOnce })) > 0;
}

/** Forgets up to `limit` followers that were last seen before an instant. Returns how many. */
export async function forgetIdle(
  { sync }: Pick<AuthorityTransaction, 'sync'>,
  { reach, before, limit }: { reach: string | null; before: number; limit: number },
): Promise<number> {
  const numbers = await sync.idle(reach, before, limit);
  for (const number of numbers) await sync.remove(number);
  return numbers.length;
}

export function tooManyAgents(): Result<never> {
  const detail = `The product or account of this credential has ${maxAgentsPerReach} agents already.`;
  return failWith('too_many_agents', detail);
}
