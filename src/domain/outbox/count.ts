import { countAfter } from '../license.ts';

/** A counter operation, as far as arithmetic goes. */
export type CounterKind = 'usage' | 'decrease';

/**
 * Settles doubtful counter operations by what the upstream's count became: how many of `kinds`, in
 * order from the first, explain the way from `base` to `read`. The longest such run is taken, since every
 * run that ends at `read` leads to the same final count. Null when none explains it: another writer.
 */
export function countApplied(base: number, kinds: readonly CounterKind[], read: number): number | null {
  let uses = base;
  let applied = uses === read ? 0 : null;
  for (const [index, kind] of kinds.entries()) {
    uses = countAfter(uses, kind);
    if (uses === read) applied = index + 1;
  }
  return applied;
}
