import {
  foldCouponCode,
  type Coupon,
  type CouponDiscount,
  type CouponFilter,
  type CouponScope,
  type CouponTerms,
} from '../domain/checkout/coupon.ts';

type ScopeColumns =
  | { scope: 'single'; productKey: string; collectionId: null }
  | { scope: 'multi'; productKey: null; collectionId: null }
  | { scope: 'collection'; productKey: null; collectionId: string };
type DiscountColumns = { percentOff: number; amountOff: null } | { percentOff: null; amountOff: number };

/** A coupon as a table holds it. */
export type CouponRow = Omit<Coupon, 'scope' | 'discount'> & ScopeColumns & DiscountColumns;

/** Everything that a `CouponRow` is made of. */
export const couponColumns = `id, code, scope, product_key AS productKey, collection_id AS collectionId,
  percent_off AS percentOff, amount_off AS amountOff, start_at AS startAt, end_at AS endAt,
  minimum_purchase_amount AS minimumPurchaseAmount, usage_limit AS usageLimit, notes`;

/**
 * The condition of a filtered list, with `filterParameters`; `table` is where the coupons are. The state is that
 * of `couponState`.
 */
export function filteredCoupons(table: 'coupon' | 'mirrored_coupon'): string {
  const redemptions = `coalesce((SELECT count FROM redemption_count
    WHERE redemption_count.account_id = ?1 AND coupon_id = ${table}.id), 0)`;
  return `(?2 IS NULL OR folded_code = ?2) AND (?3 IS NULL OR product_key = ?3) AND (?4 IS NULL OR ?4 = CASE
    WHEN ?5 > end_at THEN 'ended'
    WHEN ${redemptions} >= usage_limit THEN 'used_up'
    WHEN ?5 < start_at THEN 'scheduled'
    ELSE 'active' END)`;
}

export function filterParameters(
  accountId: string,
  { code, productKey, state }: CouponFilter,
): (string | number | null)[] {
  const folded = code === undefined ? null : foldCouponCode(code);
  return [accountId, folded, productKey ?? null, state?.is ?? null, state?.at ?? null];
}

/** Reads a coupon from its row. */
export function couponFrom(row: CouponRow): Coupon {
  const { id, code, startAt, endAt, minimumPurchaseAmount, usageLimit, notes } = row;
  const scope = scopeFrom(row);
  const discount = discountFrom(row);
  return { id, code, scope, discount, startAt, endAt, minimumPurchaseAmount, usageLimit, notes };
}

function scopeFrom(row: ScopeColumns): CouponScope {
  switch (row.scope) {
    case 'single':
      return { type: 'single', productKey: row.productKey };
    case 'multi':
      return { type: 'multi' };
    case 'collection':
      return { type: 'collection', collectionId: row.collectionId };
    default:
      return row satisfies never;
  }
}

function discountFrom(row: DiscountColumns): CouponDiscount {
  if (row.percentOff !== null) return { type: 'percent', percentOff: row.percentOff };
  return { type: 'amount', amountOff: row.amountOff };
}

/** The columns of a coupon's terms. */
export function termsColumns(terms: CouponTerms): Omit<CouponRow, 'id'> {
  const { scope, discount, code, startAt, endAt, minimumPurchaseAmount, usageLimit, notes } = terms;
  return {
    code,
    ...scopeColumns(scope),
    ...discountColumns(discount),
    startAt,
    endAt,
    minimumPurchaseAmount,
    usageLimit,
    notes,
  };
}

function scopeColumns(scope: CouponScope): ScopeColumns {
  switch (scope.type) {
    case 'single':
      return { scope: 'single', productKey: scope.productKey, collectionId: null };
    case 'multi':
      return { scope: 'multi', productKey: null, collectionId: null };
    case 'collection':
      return { scope: 'collection', productKey: null, collectionId: scope.collectionId };
    default:
      return scope satisfies never;
  }
}

function discountColumns(discount: CouponDiscount): DiscountColumns {
  return discount.type === 'percent'
    ? { percentOff: discount.percentOff, amountOff: null }
    : { percentOff: null, amountOff: discount.amountOff };
}
