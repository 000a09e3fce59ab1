import { z } from 'zod';
import { formatDatetime } from '../domain/time.ts';
import { type Product, leaseTermLimits, type LeaseTerms } from '../domain/catalogue.ts';
import type { ProductWithSecret } from '../service/authority/catalogue.ts';
import {
  boolean,
  identifier,
  integer,
  name,
  newIdentifier,
  secret,
  instant,
  parameters,
} from './parameters.ts';
import { pageShape } from './page.ts';
import { serializerOf } from './server/shape.ts';

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
  },
  { id: 'NewProduct' },
);

/** `PUT /admin/v1/products/{product_key}`: only lease terms may be missing, and then stay as they are. */
export const productChange = parameters(
  { name, recurring: boolean, archived: boolean, ...leaseTermsShape },
  { unknown: 'refused', id: 'ProductChange' },
);

const writeProduct = serializerOf(productObject.omit({ secret: true, old_secret_until: true }));

export function serializeProduct({ leaseTerms, ...product }: Product): ProductObject {
  return writeProduct({
    ...product,
    archived: product.archivedAt !== null,
    seats: leaseTerms.seats,
    leaseHoldS: leaseTerms.holdMs / 1000,
    leaseTermS: leaseTerms.termMs / 1000,
    leaseRefreshS: leaseTerms.refreshMs / 1000,
    leaseEmail: leaseTerms.showsEmail,
  });
}

/** The product with its secret, shown on creation and roll only. */
export function serializeProductSecret({
  product,
  secret: itsSecret,
  oldUntil,
}: ProductWithSecret): ProductObject {
  const until = oldUntil === null ? {} : { old_secret_until: formatDatetime(oldUntil) };
  return { ...serializeProduct(product), secret: itsSecret, ...until };
}
