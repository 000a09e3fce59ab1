import { z } from 'zod';
import {
  type PurchaseWithLicense,
  type Product,
  leaseTermLimits,
  type LeaseTerms,
} from '../domain/catalogue.ts';
import { maxInitialUses } from '../domain/license.ts';
import { formatDatetime } from '../domain/time.ts';
import type { ProductWithSecret } from '../service/authority/catalogue.ts';
import { licenseObject, serializeLicense } from './license.ts';
import {
  boolean,
  identifier,
  integer,
  name,
  newIdentifier,
  secret,
  instant,
  parameters,
  texts,
  datetime,
  email,
  emailFilter,
  licenseKeyText,
  newLicenseKey,
  searchText,
} from './parameters.ts';
import { pageShape } from './page.ts';
import { serializerOf } from './shape.ts';
import { productTermMembers, productTermParameters, termParameters } from './terms.ts';

export const productObject = z
  .object({
    product_key: z.string(),
    account_id: z.string(),
    name: z.string(),
    recurring: z.boolean(),
    archived: z.boolean(),
    seats: z.int().nullable().describe('Devices that may use a license at the same time; null: any number.'),
    lease_hold_s: z.int(),
    lease_term_s: z.int(),
    lease_refresh_s: z.int(),
    lease_email: z.boolean(),
    ...productTermMembers,
    secret: z.string().optional(),
    old_secret_until: instant.optional(),
  })
  .meta({ id: 'Product' });

export type ProductObject = z.infer<typeof productObject>;

export const productList = z.object({ products: z.array(productObject) }).meta({ id: 'ProductList' });

/** `GET /admin/v1/products`. */
export const productQuery = parameters({
  account_id: identifier.optional(),
  archived: boolean.optional(),
  ...pageShape('products'),
});

const seatsError = `out_of_range: must be from 1 to ${leaseTermLimits.maxSeats}, or unlimited`;

/** The lease terms of a product. A term that is missing is the default, or stays as it is. */
const leaseTermsShape = {
  seats: z
    .union([z.literal('unlimited').transform(() => null), integer(1, leaseTermLimits.maxSeats)], seatsError)
    .optional(),
  lease_hold_s: integer(0, leaseTermLimits.maxHoldMs / 1000).optional(),
  lease_term_s: integer(leaseTermLimits.minTermMs / 1000, leaseTermLimits.maxTermMs / 1000).optional(),
  lease_refresh_s: integer(leaseTermLimits.minRefreshMs / 1000, leaseTermLimits.maxTermMs / 1000).optional(),
  lease_email: boolean.optional(),
};

type LeaseTermsSent = {
  seats?: number | null | undefined;
  leaseHoldS?: number | undefined;
  leaseTermS?: number | undefined;
  leaseRefreshS?: number | undefined;
  leaseEmail?: boolean | undefined;
};

/** Splits the parameters of a product into its lease terms and the others. */
export function withLeaseTerms<Sent extends LeaseTermsSent>({
  seats,
  leaseHoldS,
  leaseTermS,
  leaseRefreshS,
  leaseEmail,
  ...others
}: Sent): Omit<Sent, keyof LeaseTermsSent> & { leaseTerms: Partial<LeaseTerms> } {
  const leaseTerms = {
    ...(seats !== undefined && { seats }),
    ...(leaseHoldS !== undefined && { holdMs: leaseHoldS * 1000 }),
    ...(leaseTermS !== undefined && { termMs: leaseTermS * 1000 }),
    ...(leaseRefreshS !== undefined && { refreshMs: leaseRefreshS * 1000 }),
    ...(leaseEmail !== undefined && { showsEmail: leaseEmail }),
  };
  return { ...others, leaseTerms };
}

export const productParameters = parameters(
  {
    name,
    recurring: boolean.optional(),
    account_id: identifier.optional(),
    product_key: newIdentifier.optional(),
    secret: secret.optional(),
    ...leaseTermsShape,
    ...productTermParameters,
  },
  { id: 'NewProduct' },
);

/** `PUT /admin/v1/products/{product_key}`: only terms may be missing, and then stay as they are. */
export const productChange = parameters(
  { name, recurring: boolean, archived: boolean, ...leaseTermsShape, ...productTermParameters },
  { unknown: 'refused', id: 'ProductChange' },
);

const writeProduct = serializerOf(productObject.omit({ secret: true, old_secret_until: true }));

export function serializeProduct({ leaseTerms, licenseTerms, ...product }: Product): ProductObject {
  return writeProduct({
    ...product,
    archived: product.archivedAt !== null,
    seats: leaseTerms.seats,
    leaseHoldS: leaseTerms.holdMs / 1000,
    leaseTermS: leaseTerms.termMs / 1000,
    leaseRefreshS: leaseTerms.refreshMs / 1000,
    leaseEmail: leaseTerms.showsEmail,
    ...licenseTerms,
    expiryGraceS: licenseTerms.expiryGraceMs / 1000,
  });
}

/** The product with its secret, shown on creation and rotate only. */
export function serializeProductSecret({
  product,
  secret: itsSecret,
  oldUntil,
}: ProductWithSecret): ProductObject {
  const until = oldUntil === null ? {} : { old_secret_until: formatDatetime(oldUntil) };
  return { ...serializeProduct(product), secret: itsSecret, ...until };
}

export const collectionObject = z
  .object({
    collection_id: z.string(),
    account_id: z.string(),
    name: z.string(),
    product_keys: z.array(z.string()).readonly(),
  })
  .meta({ id: 'Collection' });

export type CollectionObject = z.infer<typeof collectionObject>;

export const collectionList = z
  .object({ collections: z.array(collectionObject) })
  .meta({ id: 'CollectionList' });

/** `GET /admin/v1/collections`. */
export const collectionQuery = parameters({
  account_id: identifier.optional(),
  ...pageShape('collections'),
});

/** `PUT /admin/v1/collections/{collection_id}`: a request without all members is refused. */
export const collectionChange = parameters(
  { name, product_keys: texts },
  { unknown: 'refused', id: 'CollectionChange' },
);

export const collectionParameters = parameters(
  {
    name,
    product_keys: texts,
    collection_id: newIdentifier.optional(),
    account_id: identifier.optional(),
  },
  { id: 'NewCollection' },
);

export const serializeCollection = serializerOf(collectionObject);

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
    ...termParameters,
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
