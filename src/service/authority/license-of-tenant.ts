import type { Tenant } from '../../domain/access/principal.ts';
import type { License } from '../../domain/license.ts';
import type { Product } from '../../domain/catalogue.ts';
import { done, keyReplaced, notFound, type Result } from '../../domain/problem/problem.ts';
import type { AuthorityReader, AuthorityTransaction } from '../tables.ts';

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

/** A license that a seller changes. */
export type OfLicense = { tenant: Tenant; licenseKey: string };

/** Refuses a key that was replaced: another key has its license. */
export async function licenseToChange(
  { licenses, products }: AuthorityTransaction,
  { tenant, licenseKey }: OfLicense,
): Promise<Result<{ license: License; product: Product }>> {
  const license = await licenseOfTenant({ licenses, products }, tenant, licenseKey);
  const product = license === null ? null : await products.get(license.productKey);
  if (license === null || product === null) return notFound('license');
  return license.replacedBy === undefined ? done({ license, product }) : keyReplaced();
}
