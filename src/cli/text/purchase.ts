import { formatFields } from './layout.ts';
import { listLicense } from './license.ts';
import type { Purchase } from '../client/wire.ts';

/** Writes a purchase and its license. */
export function formatPurchase({ purchase_id, refunded, license }: Purchase): string {
  return formatFields({ purchase: purchase_id, refunded: refunded ? 'yes' : 'no', ...listLicense(license) });
}
