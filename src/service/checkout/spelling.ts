import { plainCouponCode, type CouponFilter } from '../../domain/checkout/coupon.ts';
import type { Awaitable } from '../tables.ts';

/**
 * The spelling under which a coupon is known: as sent, or else without invisible and typographic characters. An earlier
 * store may have issued codes that contain such characters.
 */
export async function knownCode(code: string, byCode: (code: string) => Awaitable<unknown>): Promise<string> {
  const plain = plainCouponCode(code);
  return plain === code || (await byCode(code)) !== null ? code : plain;
}

/** A filter of coupons with its code in the spelling under which a coupon is known. */
export async function inKnownCode<Filter extends CouponFilter>(
  filter: Filter,
  byCode: (code: string) => Awaitable<unknown>,
): Promise<Filter> {
  return filter.code === undefined ? filter : { ...filter, code: await knownCode(filter.code, byCode) };
}
