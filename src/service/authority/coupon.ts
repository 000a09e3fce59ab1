import {
  endsAfter,
  type Coupon,
  type CouponDiscount,
  type CouponScope,
  type CouponTerms,
  isPlainCouponCode,
  malformedCode,
  codeTaken,
} from '../../domain/checkout/coupon.ts';
import {
  foreignProduct,
  notFound,
  done,
  failWith,
  failWithFaults,
  type ParameterFault,
  type Result,
} from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import type { AuthorityReader, AuthorityTransaction } from '../tables.ts';

/** Finds products or collections of a coupon that the account does not have. */
export async function couponScopeFaults(
  reader: AuthorityReader,
  accountId: string,
  scope: CouponScope,
): Promise<ParameterFault[]> {
  if (scope.type === 'single') {
    const product = await reader.products.get(scope.productKey);
    return product?.accountId === accountId ? [] : [foreignProduct()];
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
  { accountId, terms }: { accountId: string; terms: CouponTerms },
): Promise<Result<Coupon>> {
  const refusal = await scopeRefusal(transaction, accountId, terms.scope);
  if (refusal !== null) return refusal;
  if (!isPlainCouponCode(terms.code)) return failWithFaults([malformedCode]);
  if ((await transaction.coupons.byCode(accountId, terms.code)) !== null) return refuseTakenCode();
  return done(await transaction.coupons.add(accountId, terms));
}

/** Replaces the terms of a coupon. After a redemption, the code, scope and discount cannot change. */
export async function updateCoupon(
  transaction: AuthorityTransaction,
  { accountId, id, terms }: NamedCoupon & { terms: CouponTerms },
): Promise<Result<Coupon>> {
  const { coupons, redemptions } = transaction;
  const coupon = await coupons.get(accountId, id);
  if (coupon === null) return notFound('coupon');
  const broken = brokenPromises(coupon, terms);
  if (broken.length > 0 && (await redemptions.countOf(accountId, id)) > 0) {
    const detail = 'The coupon was redeemed: its code, scope and discount cannot change.';
    const errors = broken.map((parameter) => ({ parameter, code: 'redeemed', detail }));
    return failWith('coupon_redeemed', detail, { errors });
  }
  const refusal = isSame(coupon.scope, terms.scope)
    ? null
    : await scopeRefusal(transaction, accountId, terms.scope);
  if (refusal !== null) return refusal;
  if (coupon.code !== terms.code && !isPlainCouponCode(terms.code)) return failWithFaults([malformedCode]);
  const holder = await coupons.byCode(accountId, terms.code);
  if (holder !== null && holder.id !== id) return refuseTakenCode();
  const changed = { ...terms, id };
  await coupons.put(changed);
  return done(changed);
}

/** Ends a coupon now. A start in the future is removed, because the end would be before the start. */
export async function endCoupon(
  { coupons }: AuthorityTransaction,
  { accountId, id }: NamedCoupon,
  { now }: Context,
): Promise<Result<Coupon>> {
  const coupon = await coupons.get(accountId, id);
  if (coupon === null) return notFound('coupon');
  if (coupon.endAt !== null && coupon.endAt < now) return { ...done(coupon), unchanged: true };
  const startAt = coupon.startAt !== null && endsAfter(coupon.startAt, now) ? coupon.startAt : null;
  const ended = { ...coupon, startAt, endAt: now };
  await coupons.put(ended);
  return done(ended);
}

/** Deletes a coupon that no order has used; orders keep referring to a used coupon. */
export async function deleteCoupon(
  { coupons, redemptions }: AuthorityTransaction,
  { accountId, id }: NamedCoupon,
): Promise<Result<Coupon>> {
  const coupon = await coupons.get(accountId, id);
  if (coupon === null) return notFound('coupon');
  if ((await redemptions.countOf(accountId, id)) > 0) {
    return failWith('coupon_redeemed', 'The coupon was redeemed: end it instead.');
  }
  await coupons.remove(id);
  return done(coupon);
}

export type NamedCoupon = { accountId: string; id: number };

/** Changed terms that customers were promised, by their names in the API. */
function brokenPromises(was: CouponTerms, terms: CouponTerms): string[] {
  const broken: string[] = [];
  if (was.code !== terms.code) broken.push('code');
  if (!isSame(was.scope, terms.scope)) broken.push('coupon_type');
  if (!isSame(was.discount, terms.discount)) {
    broken.push(terms.discount.type === 'percent' ? 'percent_off' : 'amount_off');
  }
  return broken;
}

function isSame<Value extends CouponScope | CouponDiscount>(one: Value, other: Value): boolean {
  const entries = Object.entries(one);
  return entries.every(([name, value]) => (other as Readonly<Record<string, unknown>>)[name] === value);
}

async function scopeRefusal(
  transaction: AuthorityTransaction,
  accountId: string,
  scope: CouponScope,
): Promise<Result<never> | null> {
  const faults = await couponScopeFaults(transaction, accountId, scope);
  if (faults.length > 0) return failWithFaults(faults);
  const product = scope.type === 'single' ? await transaction.products.get(scope.productKey) : null;
  if (product?.recurring !== true) return null;
  const detail = 'Coupons for products with a recurring price cannot be created here.';
  const errors = [{ parameter: 'product_key', code: 'product_is_recurring', detail }];
  return failWith('product_is_recurring', detail, { errors });
}

function refuseTakenCode(): Result<never> {
  return failWith(codeTaken.code, codeTaken.detail);
}
