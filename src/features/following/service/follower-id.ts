import { done, type Result } from '../../../domain/problem/problem.ts';
import { hexadecimal } from '../../../service/access/credential.ts';
import type { Context } from '../../../service/ports.ts';
import type { Reader, Transaction } from '../../../service/tables.ts';

/* The id under which the upstream, a Latchkey, keeps which license keys this agent follows. */

const setting = 'sync_agent';
const idBytes = 16;

/** The id of this agent as a follower; null: not made yet. Only the upstream sees it. */
export function followerId({ settings }: Pick<Reader, 'settings'>): string | null {
  const id = settings.get(setting) ?? '';
  return id === '' ? null : id;
}

export function makeFollowerId(
  { settings }: Transaction,
  _: Record<string, never>,
  { random }: Context,
): Result<null> {
  if (followerId({ settings }) === null) settings.set(setting, hexadecimal(random.bytes(idBytes)));
  return done(null);
}

/** A copied or restored store follows license keys under another id than its original. */
export function forgetFollower({ settings }: Transaction): void {
  settings.set(setting, '');
}
