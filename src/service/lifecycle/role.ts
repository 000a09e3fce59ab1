import { defaultAccountId } from '../../domain/access/principal.ts';
import type { RoleName } from '../../domain/role.ts';
import type { AuthorityReader, AuthorityTransaction, Reader } from '../tables.ts';

const setting = 'role';

/** The role of the store's first start; null for a new store. */
export function roleOf(reader: Reader): RoleName | null {
  const kept = reader.settings.get(setting);
  return kept === 'authority' || kept === 'agent' ? kept : roleByContent(reader);
}

/**
 * Whether an authority's store contains only what its first start created. Then an agent may use the store, and nothing
 * is lost. An authority never takes an agent's store: an agent without its upstream must not answer as the authority.
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

export async function keepRole({ settings }: AuthorityTransaction, role: RoleName): Promise<void> {
  await settings.set(setting, role);
}

/**
 * For stores of early versions, which did not store the role. An agent's store may have an account, too: those versions
 * created one at a start without an upstream.
 */
function roleByContent({ products, operations, mirror, snapshots, accounts }: Reader): RoleName | null {
  if (products.count({}) > 0) return 'authority';
  const known = snapshots.counts({ fresh: 0, stale: 0, grace: 0 });
  const isAgent =
    operations.lastSeq() > 0 || mirror.count() > 0 || Object.values(known).some((count) => count > 0);
  if (isAgent) return 'agent';
  return accounts.count({}) > 0 ? 'authority' : null;
}
