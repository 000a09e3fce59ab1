import { provenanceHeaderNames } from '../../domain/header-names.ts';
import type { Answer } from '../client/call.ts';
import { type Cell, formatFields } from './layout.ts';
import type { License } from '../client/wire.ts';

/** Writes a license: valid or disabled, whose it is, and how much an agent's word on it is worth. */
export function formatLicense(license: License, { headers }: Pick<Answer, 'headers'>): string {
  const header = (name: string): string | undefined => headers[name.toLowerCase()]?.toString();
  return formatFields({
    ...listLicense(license),
    freshness: header(provenanceHeaderNames.freshness),
    confirmed: header(provenanceHeaderNames.confirmedAt),
    'grace until': header(provenanceHeaderNames.graceUntil),
    pending: header(provenanceHeaderNames.pending),
  });
}

/** Lists what a license says of itself, the verdict first. */
export function listLicense(license: License): Readonly<Record<string, Cell>> {
  return {
    [license.enabled ? 'valid' : 'disabled']: license.license_key,
    uses: license.uses,
    product: license.product_link,
    buyer: license.buyer_email,
    created: license.date,
  };
}
