import { z } from 'zod';
import { provenanceHeaderNames } from '../../domain/header-names.ts';
import type { AnswerView } from '../client/ask.ts';
import type { Answer } from '../client/call.ts';
import { type Cell, formatFields, instant, whole } from '../format.ts';

/** A license as the daemon answers it. */
export interface License {
  readonly license_key: string;
  readonly enabled: boolean;
  readonly product_link: string;
  readonly buyer_email: string;
  readonly uses: number;
  readonly date: string;
}

const shape = z.object({
  license_key: z.string(),
  enabled: z.boolean(),
  product_link: z.string(),
  buyer_email: z.string(),
  uses: z.int(),
  date: z.string(),
});

/** A license object (specification 2.2). */
export const license: z.ZodType<License> = shape;

/** A license as an authority lists it, with what is known of its sale. */
export interface SoldLicense extends License {
  readonly purchase_id: string | null;
  readonly refunded_at: string | null;
}

export const soldLicense: z.ZodType<SoldLicense> = shape.extend({
  purchase_id: z.string().nullable(),
  refunded_at: z.string().nullable(),
});

/** What an authority's list knows of one license key. */
export const soldLicenses: z.ZodType<{ licenses: SoldLicense[] }> = z.object({
  licenses: z.array(soldLicense),
});

/** Where an authority lists licenses. */
export const licensesPath = '/admin/v1/licenses';

/** Shows a license: valid or disabled, whose it is, and how much an agent's word on it is worth. */
export const licenseView: AnswerView<License> = {
  schema: license,
  show(shown, { headers }) {
    const header = (name: string): string | undefined => headers[name.toLowerCase()]?.toString();
    return formatFields({
      ...licenseFields(shown),
      freshness: header(provenanceHeaderNames.freshness),
      confirmed: instant(header(provenanceHeaderNames.confirmedAt)),
      'grace until': instant(header(provenanceHeaderNames.graceUntil)),
      pending: header(provenanceHeaderNames.pending),
    });
  },
};

/** How many changes of the license the store has not confirmed. */
export function countPending({ headers }: Answer): number {
  return Number(headers[provenanceHeaderNames.pending.toLowerCase()] ?? 0);
}

/** What a license says of itself, the verdict first. */
export function licenseFields(shown: License): Readonly<Record<string, Cell>> {
  return {
    [shown.enabled ? 'valid' : 'disabled']: whole(shown.license_key),
    uses: shown.uses,
    product: shown.product_link,
    buyer: shown.buyer_email,
    created: instant(shown.date),
  };
}
