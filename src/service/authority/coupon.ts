import type { Coupon, CouponScope, CouponTerms } from '../../domain/coupon.ts';
import { done, refuse, refuseParameters, type ParameterFault, type Result } from '../../domain/problem.ts';
import type { AuthorityReader, AuthorityTransaction } from '../tables.ts';

/** The faults of a coupon's scope: products or collections that the account does not have. */
export async function couponScopeFaults(
  reader: AuthorityReader,
  accountId: string,
  scope: CouponScope,
): Promise<ParameterFault[]> {
  if (scope.type === 'single') {
    const product = await reader.products.get(scope.productKey);
    if (product?.accountId === accountId) return [];
    const detail = 'The account has no such product.';
    return [{ parameter: 'product_key', code: 'product_not_found', detail }];
  }
  if (scope.type === 'collection') {
    const collection = await reader.collections.get(scope.collectionId);
    if (collection?.accountId === accountId) return [];
    const detail = 'The account has no such collection.';
    return [{ parameter: 'collection_id', code: 'collection_not_found', detail }];
  }
  return [];
}

/** Creates a coupon (specification 4.1). */
export async function createCoupon(
  transaction: AuthorityTransaction,
  { accountId, terms, id = null }: { accountId: string; terms: CouponTerms; id?: number | null },
): Promise<Result<Coupon>> {
  const { scope } = terms;
  const faults = await couponScopeFaults(transaction, accountId, scope);
  if (faults.length > 0) return refuseParameters(faults);
  const product = scope.type === 'single' ? await transaction.products.get(scope.productKey) : null;
  if (product?.recurring === true) {
    const detail = 'Coupons for products with a recurring price cannot be created here.';
    const errors = [{ parameter: 'product_key', code: 'product_is_recurring', detail }];
    return refuse('product_is_recurring', detail, { errors });
  }
  if ((await transaction.coupons.byCode(accountId, terms.code)) !== null) {
    return refuse('coupon_code_taken', 'The account already has a coupon with this code.');
  }
  return done(await transaction.coupons.add(accountId, terms, id));
}
