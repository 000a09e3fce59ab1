import type { Answer } from './call.ts';
import { formatFields } from './layout.ts';
import type { License } from './wire.ts';

/** Writes a license: valid or disabled, whose it is, and how much an agent's word on it is worth. */
export function formatLicense(license: License, { headers }: Pick<Answer, 'headers'>): string {
  const header = (name: string): string | undefined => headers[name]?.toString();
  return formatFields({
    [license.enabled ? 'valid' : 'disabled']: license.license_key,
    uses: license.uses,
    product: license.product_link,
    buyer: license.buyer_email,
    created: license.date,
    freshness: header('latchkey-freshness'),
    confirmed: header('latchkey-confirmed-at'),
    'grace until': header('latchkey-grace-until'),
    pending: header('latchkey-pending'),
  });
}
