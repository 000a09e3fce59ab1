import { z } from 'zod';
import type { CouponTerms } from '../../../domain/checkout/coupon.ts';
import { maxInitialUses } from '../../../domain/license.ts';
import type { RejectedRow, CouponRow, LicenseRow, PurchaseRow } from '../service/import.ts';
import { couponCode, couponCreationWith, describeConditions } from '../../../wire/coupon.ts';
import { mappingShape, profileShape } from './mapping-shape.ts';
import { termParameters, withTerms } from '../../../wire/terms.ts';
import {
  importShape,
  describedRows,
  rowsOf,
  endCell,
  instantCell,
  licenseEndCell,
  stateCell,
  undamaged,
} from './import.ts';
import {
  email,
  identifier,
  integer,
  newIdentifier,
  parameters,
  type ParameterSet,
  type ValuesOf,
  without,
  newLicenseKey,
} from '../../../wire/parameters.ts';

/** `account_id`: the account that gets the coupons. */
export const couponImportQuery = parameters({
  ...importShape,
  ...mappingShape,
  account_id: identifier.optional(),
});

/**
 * The query of an import whose rows may have no product: `product_key` is the product of such rows. Rows may name only
 * products of `account_id`.
 */
export const productImportQuery = parameters({
  ...importShape,
  ...mappingShape,
  ...profileShape,
  product_key: identifier.optional(),
  account_id: identifier.optional(),
});

/** What an export has in place of the address of a person who was forgotten. A cell without a value is an error. */
export const forgottenBuyer = 'forgotten';

const buyerCell = z.union(
  [z.literal(forgottenBuyer).transform(() => ''), email],
  'not_an_email: must be an e-mail address',
);

const licenseShape = {
  license_key: undamaged(newLicenseKey),
  product_key: undamaged(identifier).optional(),
  buyer_email: buyerCell,
  uses: integer(0, maxInitialUses).optional(),
  enabled: stateCell.optional(),
  date: instantCell.optional(),
  refunded: stateCell.optional(),
  refunded_at: instantCell.optional(),
  replaced_by: undamaged(newLicenseKey).optional(),
  ...termParameters,
  expires_at: licenseEndCell.optional(),
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
  sent: LicenseCells & { row: number },
  defaultProduct: string | undefined,
): LicenseRow | RejectedRow {
  const {
    row,
    licenseKey,
    productKey,
    buyerEmail,
    uses,
    date,
    terms,
    replacedBy = null,
    ...cells
  } = withTerms(sent);
  const product = productKey ?? defaultProduct;
  if (licenseKey === null || product === undefined) {
    return { row, code: 'required', detail: 'product_key is required.' };
  }
  const { refunded, refundedAt } = cells;
  if (refunded === false && refundedAt !== undefined) {
    return { row, code: 'excluded', detail: 'refunded is false, but refunded_at has a date.' };
  }
  // A refunded key may have been enabled again later, but only an export of this program says so, without `refunded`.
  const isOff = refunded === true || replacedBy !== null;
  const enabled = isOff ? false : (cells.enabled ?? (refundedAt === undefined ? null : false));
  const input = { uses: uses ?? null, enabled, createdAt: date ?? null, replacedBy, terms };
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
