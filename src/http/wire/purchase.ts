import { z } from 'zod';
import { maximumLicenseKeyLength } from '../../domain/license-key.ts';
import type { PurchaseWithLicense } from '../../service/authority/purchase.ts';
import { boolean, datetime, identifier, integer, text } from './kind.ts';
import { licenseKeyText, licenseObject, presentLicense, type LicenseObject } from './license.ts';
import { parameters, type ParameterSet } from './parameters.ts';

export type PurchaseObject = { purchase_id: string; refunded: boolean; license: LicenseObject };

export const purchaseObject: z.ZodType<PurchaseObject> = z.object({
  purchase_id: z.string(),
  refunded: z.boolean(),
  license: licenseObject,
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
    buyer_email: text(320),
    license_key: licenseKeyText(maximumLicenseKeyLength).optional(),
    date: datetime.optional(),
    uses: integer(0).optional(),
    enabled: boolean.optional(),
  },
  { unknown: 'refused' },
);

export function presentPurchase({ purchase, license }: PurchaseWithLicense): PurchaseObject {
  return {
    purchase_id: purchase.purchaseId,
    refunded: purchase.refundedAt !== null,
    license: presentLicense(license),
  };
}
