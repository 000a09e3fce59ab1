import type { Reach } from '../../domain/principal.ts';
import type { License } from '../../domain/license.ts';
import { refuse, type Result } from '../../domain/problem.ts';
import type { Reader } from '../tables.ts';

/** The license that a credential reaches under this key; null when there is none for it. */
export function reachableLicense(reader: Reader, reach: Reach, licenseKey: string): License | null {
  const license = reader.licenses.get(licenseKey);
  if (license === null) return null;
  if (reach.productKey !== null) return license.productKey === reach.productKey ? license : null;
  const product = reader.products.get(license.productKey);
  return product?.accountId === reach.accountId ? license : null;
}

/** The one answer for unknown keys and for those of other products, so that neither can be told apart. */
export function licenseNotFound(): Result<never> {
  return refuse('license_not_found', 'No license with this key is known for these credentials.');
}
