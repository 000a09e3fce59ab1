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

type TermsColumns = Omit<CouponTerms, 'scope' | 'discount'> & {
  scope: CouponScope['type'];
  productKey: string | null;
  collectionId: string | null;
  percentOff: number | null;
  amountOff: number | null;
};

export function termsColumns({ scope, discount, ...terms }: CouponTerms): TermsColumns {
  const { code, startAt, endAt, minimumPurchaseAmount, usageLimit, notes } = terms;
  return {
    code,
    scope: scope.type,
    productKey: scope.type === 'single' ? scope.productKey : null,
    collectionId: scope.type === 'collection' ? scope.collectionId : null,
    percentOff: discount.type === 'percent' ? discount.percentOff : null,
    amountOff: discount.type === 'amount' ? discount.amountOff : null,
    startAt,
    endAt,
    minimumPurchaseAmount,
    usageLimit,
    notes,
  };
}
