import type { AuthorityTransaction, Reader } from '../tables.ts';

const setting = 'role';

/** What a store holds: an authority's licenses, or an agent's copy of its upstream's. */
export type StoreRole = 'authority' | 'agent';

/** The role that a store was first started in; null on a new one. */
export function roleOf(reader: Reader): StoreRole | null {
  const kept = reader.settings.get(setting);
  return kept === 'authority' || kept === 'agent' ? kept : roleByContent(reader);
}

/** Stores the role. */
export async function keepRole({ settings }: AuthorityTransaction, role: StoreRole): Promise<void> {
  await settings.set(setting, role);
}

/**
 * For stores of versions that did not store the role. An agent's may have an account as well: such a version
 * made one when it was started without its upstream.
 */
function roleByContent({ products, operations, mirror, observations, accounts }: Reader): StoreRole | null {
  if (products.count({}) > 0) return 'authority';
  const known = observations.census({ fresh: 0, stale: 0, grace: 0 });
  const isAgent =
    operations.lastSeq() > 0 || mirror.count() > 0 || Object.values(known).some((count) => count > 0);
  if (isAgent) return 'agent';
  return accounts.count({}) > 0 ? 'authority' : null;
}
