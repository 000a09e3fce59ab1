import type { Tenant } from '../../domain/access/principal.ts';
import type { License } from '../../domain/license.ts';
import type { AuthorityReader } from '../tables.ts';

/**
 * Null if the key is unknown or belongs to another tenant. Both cases cost the same reads, so that the response time
 * does not reveal which keys exist.
 */
export async function licenseOfTenant(
  reader: Pick<AuthorityReader, 'licenses' | 'products'>,
  tenant: Tenant,
  licenseKey: string,
): Promise<License | null> {
  const license = await reader.licenses.get(licenseKey);
  if (tenant.productKey !== null) return license?.productKey === tenant.productKey ? license : null;
  const product = await reader.products.get(license?.productKey ?? '');
  return product?.accountId === tenant.accountId ? license : null;
}
