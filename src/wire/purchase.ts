import { z } from 'zod';
import { maxInitialUses } from '../domain/license.ts';
import type { PurchaseWithLicense } from '../domain/catalogue.ts';
import {
  boolean,
  datetime,
  email,
  identifier,
  integer,
  emailFilter,
  instant,
  parameters,
  searchText,
} from './parameters.ts';
import { licenseKeyText, licenseObject, newLicenseKey, serializeLicense } from './license.ts';
import { pageShape } from './page.ts';
import { serializerOf } from './server/shape.ts';

export const purchaseObject = z
  .object({
    purchase_id: z.string(),
    date: instant,
    refunded: z.boolean(),
    refunded_at: instant.nullable(),
    license: licenseObject,
  })
  .meta({ id: 'Purchase' });

export type PurchaseObject = z.infer<typeof purchaseObject>;

export const purchaseList = z.object({ purchases: z.array(purchaseObject) }).meta({ id: 'PurchaseList' });

/** The end of the given second: responses contain dates in whole seconds. */
const wholeSecond = datetime.transform((input) => Math.floor(input / 1000) * 1000 + 999);

/** `GET /admin/v1/purchases`. */
export const purchaseQuery = parameters({
  account_id: identifier.optional(),
  product_key: identifier.optional(),
  license_key: licenseKeyText.optional(),
  buyer_email: emailFilter.optional(),
  since: datetime.optional(),
  until: wholeSecond.optional(),
  refunded: boolean.optional(),
  search: searchText('license key', 'e-mail address of the buyer').optional(),
  ...pageShape('purchases'),
});

export const purchaseParameters = parameters(
  {
    product_key: identifier,
    buyer_email: email,
    license_key: newLicenseKey.optional(),
    date: datetime.optional(),
    uses: integer(0, maxInitialUses).optional(),
    enabled: boolean.optional(),
  },
  { unknown: 'refused', id: 'NewPurchase' },
);

const writePurchase = serializerOf(purchaseObject.omit({ license: true }));

export function serializePurchase({ purchase, license }: PurchaseWithLicense): PurchaseObject {
  const { createdAt: date, refundedAt } = purchase;
  return {
    ...writePurchase({ ...purchase, date, refunded: refundedAt !== null }),
    license: serializeLicense(license),
  };
}
