import type { Tenant } from '../../domain/access/principal.ts';
import type { License } from '../../domain/license.ts';
import { refuse, type Result } from '../../domain/problem/problem.ts';
import type { AuthorityReader } from '../tables.ts';

/**
 * The license with this key, if the credential may reach it; null otherwise. An unknown key costs the same reads as a key
 * of another account, so that the time of the answer does not tell which keys exist.
 */
export async function licenseOfTenant(
  reader: AuthorityReader,
  tenant: Tenant,
  licenseKey: string,
): Promise<License | null> {
  const license = await reader.licenses.get(licenseKey);
  if (tenant.productKey !== null) return license?.productKey === tenant.productKey ? license : null;
  const product = await reader.products.get(license?.productKey ?? '');
  return product?.accountId === tenant.accountId ? license : null;
}

/** The same answer for unknown keys and for keys of other products, so that nobody can tell which exist. */
export function licenseNotFound(): Result<never> {
  return refuse('license_not_found', 'No license with this key is known for these credentials.');
}
