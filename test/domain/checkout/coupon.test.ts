import { describe, expect, it } from 'vitest';
import {
  couponCodePattern,
  couponFaults,
  couponState,
  couponTerms,
  foldCouponCode,
  type CouponParameters,
  type CouponScope,
  type CouponTerms,
} from '../../../src/domain/checkout/coupon.ts';

const sound: CouponParameters & { code: string } = { couponType: 'multi', percentOff: 20, code: 'SPRING' };

function faultsOf(changes: CouponParameters): string[] {
  return couponFaults({ ...sound, ...changes }).map(({ parameter, code }) => `${parameter} ${code}`);
}

type Sent = 'neither' | 'product' | 'collection' | 'both';
const sent: Record<Sent, CouponParameters> = {
  neither: {},
  product: { productKey: 'press' },
  collection: { collectionId: 'c1' },
  both: { productKey: 'press', collectionId: 'c1' },
};

/** Which parameters go with which scope (specification 2.1 and 4.1). */
const scopeTable: Record<CouponScope['type'], Record<Sent, string[]>> = {
  single: {
    neither: ['product_key required'],
    product: [],
    collection: ['product_key required', 'collection_id excluded'],
    both: ['collection_id excluded'],
  },
  multi: {
    neither: [],
    product: ['product_key excluded'],
    collection: ['collection_id excluded'],
    both: ['product_key excluded', 'collection_id excluded'],
  },
  collection: {
    neither: ['collection_id required'],
    product: ['product_key excluded', 'collection_id required'],
    collection: [],
    both: ['product_key excluded'],
  },
};

const scopeCells = Object.entries(scopeTable).flatMap(([type, row]) =>
  Object.entries(row).map(([which, faults]) => ({
    type: type as CouponScope['type'],
    which: which as Sent,
    faults,
  })),
);

describe('the faults between parameters of a coupon', () => {
  it.each(scopeCells)('of scope $type with $which are $faults', ({ type, which, faults }) => {
    expect(faultsOf({ couponType: type, ...sent[which] })).toEqual(faults);
  });

  it('say that it has either a percentage or an amount', () => {
    expect(faultsOf({ percentOff: undefined })).toEqual(['percent_off required']);
    expect(faultsOf({ amountOff: 500 })).toEqual(['amount_off excluded']);
    expect(faultsOf({ percentOff: undefined, amountOff: 500 })).toEqual([]);
  });

  it('do not tell what goes with a scope that was not sent, which is a fault of its own', () => {
    expect(faultsOf({ couponType: undefined, ...sent.both })).toEqual([]);
  });

  it('say that it ends after its start', () => {
    const after = ['end_date not_after_start'];
    expect(faultsOf({ startDate: 2_000, endDate: 1_000 })).toEqual(after);
    expect(faultsOf({ startDate: 2_000, endDate: 2_000 })).toEqual(after);
    // In answers both would be the same second.
    expect(faultsOf({ startDate: 2_000, endDate: 2_999 })).toEqual(after);
    expect(faultsOf({ startDate: 2_999, endDate: 3_000 })).toEqual([]);
    expect(faultsOf({ startDate: 2 })).toEqual([]);
    expect(faultsOf({ endDate: 2 })).toEqual([]);
  });

  it('are told all at once', () => {
    const all = { couponType: 'single', amountOff: 5, startDate: 2, endDate: 1 } as const;
    expect(faultsOf(all)).toEqual([
      'amount_off excluded',
      'product_key required',
      'end_date not_after_start',
    ]);
  });
});

describe('the terms of a coupon', () => {
  it('are null where nothing was sent', () => {
    expect(couponTerms(sound)).toEqual({
      scope: { type: 'multi' },
      discount: { type: 'percent', percentOff: 20 },
      code: 'SPRING',
      startAt: null,
      endAt: null,
      minimumPurchaseAmount: null,
      usageLimit: null,
      notes: null,
    });
  });

  it('hold all that was sent', () => {
    const parameters = {
      couponType: 'collection',
      collectionId: 'c1',
      amountOff: 500,
      code: 'c',
      startDate: 1,
      endDate: 2,
      minimumPurchaseAmount: 3,
      usageLimit: 4,
      notes: 'n',
    } as const;
    expect(couponTerms(parameters)).toEqual({
      scope: { type: 'collection', collectionId: 'c1' },
      discount: { type: 'amount', amountOff: 500 },
      code: 'c',
      startAt: 1,
      endAt: 2,
      minimumPurchaseAmount: 3,
      usageLimit: 4,
      notes: 'n',
    });
  });

  it('cannot be made of faulty parameters', () => {
    expect(() => couponTerms({ ...sound, couponType: 'single' })).toThrow('scope');
    expect(() => couponTerms({ ...sound, couponType: 'collection', productKey: 'press' })).toThrow('scope');
    expect(() => couponTerms({ ...sound, couponType: undefined, collectionId: 'c1' })).toThrow('scope');
    expect(() => couponTerms({ couponType: 'multi', code: 'c' })).toThrow('discount');
  });
});

describe('a coupon code', () => {
  it.each(['SPRING-20', 'été', '20%', '日本'])('may be %s', (code) => {
    expect(couponCodePattern.test(code)).toBe(true);
  });

  it.each(['', 'a b', 'a\tb', 'a\u00a0b', 'a\u0000', 'a\u0085', 'a\n'])(
    'holds no white space or control: %j',
    (code) => {
      expect(couponCodePattern.test(code)).toBe(false);
    },
  );

  it('is compared without case, however its letters are composed', () => {
    expect(foldCouponCode('ÉTÉ')).toBe(foldCouponCode('e\u0301te\u0301'));
    expect(foldCouponCode('Spring')).toBe(foldCouponCode('SPRING'));
    expect(foldCouponCode('SPRING')).not.toBe(foldCouponCode('SPRlNG'));
  });
});

describe('the state of a coupon', () => {
  const at = Date.UTC(2026, 0, 1);
  const terms: CouponTerms = {
    scope: { type: 'multi' },
    discount: { type: 'amount', amountOff: 5 },
    code: 'X',
    startAt: at,
    endAt: at + 10,
    minimumPurchaseAmount: null,
    usageLimit: 2,
    notes: null,
  };

  it.each([
    ['scheduled', 0, at - 1],
    ['active', 0, at],
    ['active', 1, at + 10],
    ['used_up', 2, at],
    ['used_up', 3, at - 1],
    ['ended', 2, at + 11],
    ['ended', 0, at + 11],
  ] as const)('is %s after %i redemptions', (state, redemptions, now) => {
    expect(couponState(terms, redemptions, now)).toBe(state);
  });

  it('is active for ever without dates and limit', () => {
    const open = { ...terms, startAt: null, endAt: null, usageLimit: null };
    expect(couponState(open, 1_000_000, at)).toBe('active');
  });
});
