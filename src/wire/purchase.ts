import { z } from 'zod';
import { mostUsesFromOutside } from '../domain/license.ts';
import { maximumLicenseKeyLength } from '../domain/license-key.ts';
import type { Page } from '../domain/page.ts';
import type { PurchaseWithLicense } from '../domain/purchase.ts';
import type { PurchaseFilter } from '../service/authority/tables.ts';
import { formatDatetime } from '../domain/datetime.ts';
import { boolean, datetime, email, identifier, integer, soughtEmail } from './types.ts';
import {
  licenseKeyText,
  licenseObject,
  serializeLicense,
  soughtLicenseKey,
  type LicenseObject,
} from './license.ts';
import { pageShape } from './page.ts';
import { parameters, type ParameterSet } from './parameters.ts';

export type PurchaseObject = {
  purchase_id: string;
  date: string;
  refunded: boolean;
  refunded_at: string | null;
  license: LicenseObject;
};

export const purchaseObject: z.ZodType<PurchaseObject> = z
  .object({
    purchase_id: z.string(),
    date: z.iso.datetime({ offset: true }),
    refunded: z.boolean(),
    refunded_at: z.iso.datetime({ offset: true }).nullable(),
    license: licenseObject,
  })
  .meta({ id: 'Purchase' });

export const purchaseList: z.ZodType<{ purchases: PurchaseObject[] }> = z
  .object({
    purchases: z.array(purchaseObject),
  })
  .meta({ id: 'PurchaseList' });

/** The end of the second that is named: answers tell dates in whole seconds. */
const wholeSecond: z.ZodType<number> = datetime.transform((given) => Math.floor(given / 1000) * 1000 + 999);

/** `GET /admin/v1/purchases`. */
export const purchaseQuery: ParameterSet<
  Omit<PurchaseFilter, 'reach'> & { accountId?: string | undefined } & Page
> = parameters({
  account_id: identifier.optional(),
  product_key: identifier.optional(),
  license_key: soughtLicenseKey.optional(),
  buyer_email: soughtEmail.optional(),
  since: datetime.optional(),
  until: wholeSecond.optional(),
  refunded: boolean.optional(),
  ...pageShape('purchases'),
});

export const purchaseParameters: ParameterSet<{
  productKey: string;
  buyerEmail: string;
  licenseKey?: string | null | undefined;
  date?: number | undefined;
  uses?: number | undefined;
  enabled?: boolean | undefined;
}> = parameters(
  {
    product_key: identifier,
    buyer_email: email,
    license_key: licenseKeyText(maximumLicenseKeyLength).optional(),
    date: datetime.optional(),
    uses: integer(0, mostUsesFromOutside).optional(),
    enabled: boolean.optional(),
  },
  { unknown: 'refused', id: 'NewPurchase' },
);

export function serializePurchase({ purchase, license }: PurchaseWithLicense): PurchaseObject {
  return {
    purchase_id: purchase.purchaseId,
    date: formatDatetime(purchase.createdAt),
    refunded: purchase.refundedAt !== null,
    refunded_at: purchase.refundedAt === null ? null : formatDatetime(purchase.refundedAt),
    license: serializeLicense(license),
  };
}
