import type { Coupon, CouponScope, CouponTerms } from '../../domain/coupon.ts';
import { done, refuse, refuseParameters, type ParameterFault, type Result } from '../../domain/problem.ts';
import type { Reader, Transaction } from '../tables.ts';

/** What the catalogue holds against a coupon's scope: things it does not have. */
export function couponScopeFaults(reader: Reader, accountId: string, scope: CouponScope): ParameterFault[] {
  if (scope.type === 'single' && reader.products.get(scope.productKey)?.accountId !== accountId) {
    const detail = 'The account has no such product.';
    return [{ parameter: 'product_key', code: 'product_not_found', detail }];
  }
  if (scope.type === 'collection' && reader.collections.get(scope.collectionId)?.accountId !== accountId) {
    const detail = 'The account has no such collection.';
    return [{ parameter: 'collection_id', code: 'collection_not_found', detail }];
  }
  return [];
}

/** Creates a coupon on the authority (specification 4.1). */
export function createCoupon(
  transaction: Transaction,
  { accountId, terms }: { accountId: string; terms: CouponTerms },
): Result<Coupon> {
  const faults = couponScopeFaults(transaction, accountId, terms.scope);
  if (faults.length > 0) return refuseParameters(faults);
  if (terms.scope.type === 'single' && transaction.products.get(terms.scope.productKey)?.recurring === true) {
    const detail = 'Coupons for products with a recurring price cannot be created here.';
    const errors = [{ parameter: 'product_key', code: 'product_is_recurring', detail }];
    return refuse('product_is_recurring', detail, { errors });
  }
  if (transaction.coupons.byCode(accountId, terms.code) !== null) {
    return refuse('coupon_code_taken', 'The account already has a coupon with this code.');
  }
  return done(transaction.coupons.add(accountId, terms));
}
