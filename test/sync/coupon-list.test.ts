import { expect, it } from 'vitest';
import type { Coupon } from '../../src/domain/checkout/coupon.ts';
import type { Page } from '../../src/domain/page.ts';
import { readCouponList } from '../../src/sync/coupon-list.ts';

const terms: Omit<Coupon, 'id'> = {
  scope: { type: 'multi' },
  discount: { type: 'percent', percentOff: 20 },
  code: 'Spring',
  startAt: null,
  endAt: null,
  minimumPurchaseAmount: null,
  usageLimit: null,
  notes: null,
};

/** An upstream with so many coupons. */
function withCoupons(total: number) {
  return async ({ limit, offset }: Page) => {
    const count = Math.min(limit, Math.max(0, total - offset));
    const coupons = Array.from({ length: count }, (_, index) => ({ ...terms, id: offset + index + 1 }));
    return {
      outcome: 'applied',
      value: { coupons, unreadable: [] },
      confirmedAt: 1,
      isCached: false,
    } as const;
  };
}

it.each([0, 1, 99, 100, 101, 250])('a list of %i coupons is read whole', async (total) => {
  const list = await readCouponList(withCoupons(total), 1);
  expect(list).toMatchObject({ outcome: 'applied', value: { coupons: { length: total } } });
});

it('a list without an end is not taken for whole, since the coupon that is looked for may be beyond', async () => {
  expect(await readCouponList(withCoupons(Infinity), 1)).toMatchObject({
    outcome: 'not_applied',
    detail: expect.stringContaining('more than 100000 coupons') as string,
  });
});
