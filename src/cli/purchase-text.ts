import { formatFields } from './layout.ts';
import { formatLicense } from './license-text.ts';
import type { Purchase } from './wire.ts';

/** Writes a purchase and its license. */
export function formatPurchase({ purchase_id, refunded, license }: Purchase): string {
  const fields = formatFields({ purchase: purchase_id, refunded: refunded ? 'yes' : 'no' });
  return `${fields}\n${formatLicense(license, { headers: {} })}`;
}
