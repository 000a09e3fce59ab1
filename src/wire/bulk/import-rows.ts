import { z } from 'zod';
import type { CouponTerms } from '../../domain/checkout/coupon.ts';
import { maxInitialUses } from '../../domain/license.ts';
import type { RejectedRow, CouponRow, LicenseRow, PurchaseRow } from '../../service/authority/import.ts';
import { maxDeviceNameLength } from '../../domain/lease.ts';
import { parseDatetime } from '../../domain/time.ts';
import type { ActivationRow } from '../../service/lease/import.ts';
import { couponCode, couponCreationWith, describeConditions } from '../coupon.ts';
import { importShape, describedRows, rowsOf, endCell, instantCell, stateCell, undamaged } from './import.ts';
import {
  email,
  identifier,
  integer,
  newIdentifier,
  oneOf,
  parameters,
  type ParameterSet,
  text,
  textMatching,
  type ValuesOf,
  without,
} from '../parameters.ts';
import { newLicenseKey } from '../license.ts';

/** `account_id`: the account that gets the coupons. */
export const couponImportQuery = parameters({
  ...importShape,
  account_id: identifier.optional(),
});

/**
 * The query of an import whose rows may have no product: `product_key` is the product of such rows. Rows may name only
 * products of `account_id`.
 */
export const productImportQuery = parameters({
  ...importShape,
  product_key: identifier.optional(),
  account_id: identifier.optional(),
});

const licenseShape = {
  license_key: undamaged(newLicenseKey),
  product_key: undamaged(identifier).optional(),
  buyer_email: email,
  uses: integer(0, maxInitialUses).optional(),
  enabled: stateCell.optional(),
  date: instantCell.optional(),
  refunded: stateCell.optional(),
  refunded_at: instantCell.optional(),
};
const licenseCells = parameters(licenseShape, { unknown: 'refused', id: 'LicenseRow' });

type LicenseCells = ValuesOf<typeof licenseCells>;

/** The body of an import of licenses; CSV is the rows alone. */
export const licenseImport = {
  ...parameters({ product_key: identifier.optional(), licenses: rowsOf(licenseCells) }),
  schema: z
    .object({ product_key: identifier.optional(), licenses: describedRows(licenseCells) })
    .meta({ id: 'LicenseImport' }),
};

/** `defaultProduct`: the product of rows that name none. */
export function licenseRow(
  { row, licenseKey, productKey, buyerEmail, uses, date, ...cells }: LicenseCells & { row: number },
  defaultProduct: string | undefined,
): LicenseRow | RejectedRow {
  const product = productKey ?? defaultProduct;
  if (licenseKey === null || product === undefined) {
    return { row, code: 'required', detail: 'product_key is required.' };
  }
  const { refunded, refundedAt } = cells;
  if (refunded === false && refundedAt !== undefined) {
    return { row, code: 'excluded', detail: 'refunded is false, but refunded_at has a date.' };
  }
  // A refunded key may have been enabled again later, but only an export of this program says so, without `refunded`.
  const enabled = refunded === true ? false : (cells.enabled ?? (refundedAt === undefined ? null : false));
  const input = { uses: uses ?? null, enabled, createdAt: date ?? null };
  return { row, licenseKey, productKey: product, buyerEmail, ...input };
}

const purchaseCells = parameters(
  { purchase_id: undamaged(newIdentifier).optional(), ...licenseShape },
  { unknown: 'refused', id: 'PurchaseRow' },
);

type PurchaseCells = ValuesOf<typeof purchaseCells>;

/** The body of an import of purchases; CSV is the rows alone. */
export const purchaseImport = {
  ...parameters({ product_key: identifier.optional(), purchases: rowsOf(purchaseCells) }),
  schema: z
    .object({ product_key: identifier.optional(), purchases: describedRows(purchaseCells) })
    .meta({ id: 'PurchaseImport' }),
};

export function purchaseRow(
  { purchaseId, ...cells }: PurchaseCells & { row: number },
  defaultProduct: string | undefined,
): PurchaseRow | RejectedRow {
  const license = licenseRow(cells, defaultProduct);
  if ('code' in license) return license;
  const { refunded, refundedAt = null } = cells;
  const isRefunded = refunded ?? refundedAt !== null;
  return { ...license, purchaseId: purchaseId ?? null, refundedAt, isRefunded };
}

type CouponCells = ValuesOf<typeof couponIdCell> & { terms: CouponTerms };

/** New coupons get ids above the greatest imported id, and need room there. */
const greatestCouponId = 2 ** 52 - 1;

const couponIdCell = parameters({
  id: integer(1, greatestCouponId).optional(),
});

const couponTermCells = couponCreationWith({
  code: undamaged(couponCode),
  start_date: instantCell,
  end_date: endCell,
});

const couponCells: ParameterSet<CouponCells> = {
  schema: couponTermCells.schema
    .extend(couponIdCell.schema.shape)
    .meta({ id: 'CouponRow', override: describeConditions }),
  read(raw) {
    const id = couponIdCell.read(raw);
    const terms = couponTermCells.read(without(raw, 'id'));
    if (id.ok && terms.ok) return { ok: true, values: { ...id.values, terms: terms.values } };
    const faults = [id, terms].flatMap((read) => (read.ok ? [] : read.faults));
    return { ok: false, values: {}, faults };
  },
};

/** The body of an import of coupons; CSV is the rows alone. */
export const couponImport = {
  ...parameters({ coupons: rowsOf(couponCells) }),
  schema: z.object({ coupons: describedRows(couponCells) }).meta({ id: 'CouponImport' }),
};

export function couponRow({ row, id, terms }: CouponCells & { row: number }): CouponRow {
  return { row, id: id ?? null, terms };
}

/** Instants with a space between them, as an export writes them. */
const instantsCell = text(200)
  .refine(
    (input) => input.split(' ').every((each) => parseDatetime(each) !== null),
    'not_a_datetime: must be RFC 3339 datetimes with a space between them',
  )
  .transform((input) => input.split(' ').map((each) => Number(parseDatetime(each))));

const activationCells = parameters(
  {
    activation_id: newIdentifier,
    license_key: undamaged(newLicenseKey),
    product_key: undamaged(identifier).optional(),
    device: textMatching(/^[\w-]{43}$/, 43, 'must be the thumbprint (RFC 7638) of the key of a device'),
    device_name: text(maxDeviceNameLength).optional(),
    state: oneOf(['active', 'ended', 'replaced', 'blocked'] as const),
    seq: integer(0),
    rev: integer(0),
    expires_at: instantCell,
    seat_until: instantCell,
    uses_recorded: integer(0),
    uses_returned: integer(0),
    created_at: instantCell,
    renewed_at: instantCell,
    moved_at: instantsCell.optional(),
    challenged_at: instantsCell.optional(),
    copied_at: instantCell.optional(),
    digest: textMatching(
      /^[0-9a-f]{64}$/,
      64,
      'must be the digest of the last request (SHA-256, in lower-case hexadecimal)',
    ).optional(),
  },
  { unknown: 'refused', id: 'ActivationRow' },
);

type ActivationCells = ValuesOf<typeof activationCells>;

/** The body of an import of activations; CSV is the rows alone. */
export const activationImport = {
  ...parameters({ product_key: identifier.optional(), activations: rowsOf(activationCells) }),
  schema: z
    .object({ product_key: identifier.optional(), activations: describedRows(activationCells) })
    .meta({ id: 'ActivationImport' }),
};

export function activationRow(
  { row, licenseKey, productKey, usesRecorded, usesReturned, ...cells }: ActivationCells & { row: number },
  defaultProduct: string | undefined,
): ActivationRow | RejectedRow {
  const product = productKey ?? defaultProduct;
  if (licenseKey === null || product === undefined) {
    return { row, code: 'required', detail: 'product_key is required.' };
  }
  const activation = {
    ...cells,
    licenseKey,
    productKey: product,
    deviceName: cells.deviceName ?? null,
    uses: { recorded: usesRecorded, returned: usesReturned },
    movedAt: cells.movedAt ?? [],
    challengedAt: cells.challengedAt ?? [],
    copiedAt: cells.copiedAt ?? null,
    digest: cells.digest ?? '',
  };
  return { row, activation };
}
