import type { Coupon, CouponDiscount, CouponScope, CouponTerms } from '../domain/checkout/coupon.ts';

type ScopeColumns =
  | { scope: 'single'; productKey: string; collectionId: null }
  | { scope: 'multi'; productKey: null; collectionId: null }
  | { scope: 'collection'; productKey: null; collectionId: string };
type DiscountColumns = { percentOff: number; amountOff: null } | { percentOff: null; amountOff: number };

export type CouponRow = Omit<Coupon, 'scope' | 'discount'> & ScopeColumns & DiscountColumns;

/** `couponState` in SQL. `at`, `redemptions`: SQL expressions for an instant and a number of redemptions. */
export function stateInSql(at: string, redemptions: string): string {
  return `CASE WHEN ${at} > end_at THEN 'ended' WHEN ${redemptions} >= usage_limit THEN 'used_up'
    WHEN ${at} < start_at THEN 'scheduled' ELSE 'active' END`;
}

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
