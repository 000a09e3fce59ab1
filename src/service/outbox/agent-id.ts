import { hexadecimal } from '../access/credential.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import type { Reader, Transaction } from '../tables.ts';

/*
 * Who this agent is for an upstream that speaks `/sync/v1`. Pushes are numbered for each agent id, so another id also begins
 * at the number 1.
 */

const agentSetting = 'sync_agent';
const agentIdBytes = 16;

/** The id by which the upstream knows this agent; null: not made yet. Only the upstream sees it. */
export function agentIdOf({ settings }: Pick<Reader, 'settings'>): string | null {
  const id = settings.get(agentSetting) ?? '';
  return id === '' ? null : id;
}

export function makeAgentId(
  transaction: Transaction,
  _: Record<string, never>,
  context: Context,
): Result<null> {
  agentId(transaction, context);
  return done(null);
}

export function agentId({ settings }: Transaction, { random }: Context): string {
  const known = agentIdOf({ settings });
  if (known !== null) return known;
  const made = hexadecimal(random.bytes(agentIdBytes));
  settings.set(agentSetting, made);
  return made;
}

/** The next push has another agent id and the number 1. The epochs stay: they show whether the upstream was restored. */
export function forgetIdentity(transaction: Transaction): void {
  const { settings, pushes, follows, snapshots } = transaction;
  settings.set(agentSetting, '');
  noteRenumbering(transaction);
  pushes.restart();
  follows.removeAll();
  snapshots.unfollowAll();
}

const renumberedSetting = 'sync_renumbered';

/** From now on the number of the push of an operation does not say whether a restored upstream has it. */
export function noteRenumbering({ settings }: Transaction): void {
  settings.set(renumberedSetting, '1');
}

export function wasRenumbered({ settings }: Pick<Reader, 'settings'>): boolean {
  return settings.get(renumberedSetting) === '1';
}

/** Nothing that was pushed until now is ever sent again: another store is the upstream. */
export function forgetPushes({ settings, operations, pushes, follows, snapshots }: Transaction): void {
  settings.set(renumberedSetting, '');
  operations.forgetPushes();
  pushes.removeAll();
  follows.removeAll();
  snapshots.unfollowAll();
}
