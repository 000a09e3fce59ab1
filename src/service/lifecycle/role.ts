import { defaultAccountId } from '../../domain/access/principal.ts';
import type { RoleName } from '../../domain/role.ts';
import type { AuthorityReader, AuthorityTransaction, Reader } from '../tables.ts';

const setting = 'role';

/** The role that a store was first started in; null on a new one. */
export function roleOf(reader: Reader): RoleName | null {
  const kept = reader.settings.get(setting);
  return kept === 'authority' || kept === 'agent' ? kept : roleByContent(reader);
}

/**
 * Whether an authority's store holds no more than its first start made. It may become an agent's: nothing of it
 * would be stranded. Never the other way round: an agent that has lost its upstream must not answer for it.
 */
export async function isUnusedAuthority({
  accounts,
  products,
  collections,
  coupons,
}: AuthorityReader): Promise<boolean> {
  const counts = await Promise.all([
    products.count({}),
    collections.count({}),
    coupons.count(defaultAccountId),
  ]);
  return counts.every((count) => count === 0) && (await accounts.count({})) <= 1;
}

/** Stores the role. */
export async function keepRole({ settings }: AuthorityTransaction, role: RoleName): Promise<void> {
  await settings.set(setting, role);
}

/**
 * For stores of versions that did not store the role. An agent's may have an account as well: such a version
 * made one when it was started without its upstream.
 */
function roleByContent({ products, operations, mirror, snapshots, accounts }: Reader): RoleName | null {
  if (products.count({}) > 0) return 'authority';
  const known = snapshots.census({ fresh: 0, stale: 0, grace: 0 });
  const isAgent =
    operations.lastSeq() > 0 || mirror.count() > 0 || Object.values(known).some((count) => count > 0);
  if (isAgent) return 'agent';
  return accounts.count({}) > 0 ? 'authority' : null;
}
