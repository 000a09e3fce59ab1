import {
  assert,
  constantFrom,
  date,
  integer,
  nat,
  oneof,
  option,
  property,
  record,
  string,
} from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  couponFaults,
  couponTerms,
  foldCouponCode,
  type CouponParameters,
} from '../../src/domain/checkout/coupon.ts';
import { formatDatetime, parseDatetime } from '../../src/domain/time.ts';

const sent = { nil: undefined };
const halfSeconds = nat(10).map((count) => count * 500);
const parameters = record<CouponParameters & { code: string }>({
  couponType: constantFrom('single', 'multi', 'collection'),
  percentOff: option(integer({ min: 1, max: 100 }), sent),
  amountOff: option(integer({ min: 1, max: 10_000 }), sent),
  code: string({ minLength: 1 }),
  startDate: option(halfSeconds, sent),
  endDate: option(halfSeconds, sent),
  productKey: option(string(), sent),
  collectionId: option(string(), sent),
  minimumPurchaseAmount: option(nat(), sent),
  usageLimit: option(nat(), sent),
  notes: option(string(), sent),
});

/** Parameters with one discount and one scope. In free draws these are one in twenty. */
const described = parameters.map((all) => ({
  ...all,
  amountOff: all.percentOff === undefined ? (all.amountOff ?? 1) : undefined,
  productKey: all.couponType === 'single' ? (all.productKey ?? 'P') : undefined,
  collectionId: all.couponType === 'collection' ? (all.collectionId ?? 'C') : undefined,
}));

describe('the parameters of a coupon', () => {
  it('coupon parameters are valid exactly if they describe one coupon', () => {
    assert(
      property(oneof(parameters, described), (all) => {
        const { couponType, percentOff, amountOff, productKey, collectionId, startDate, endDate } = all;
        const hasOneDiscount = (percentOff === undefined) !== (amountOff === undefined);
        const hasItsScope =
          (couponType === 'single') === (productKey !== undefined) &&
          (couponType === 'collection') === (collectionId !== undefined);
        // Responses have whole seconds.
        const [start = -1, end = Infinity] = [startDate, endDate].map((at) => at && Math.floor(at / 1000));
        const isInOrder = start < end;
        expect(couponFaults(all).length === 0).toBe(hasOneDiscount && hasItsScope && isInOrder);
      }),
    );
  });

  it('coupon parameters make terms with either a percentage or an amount, and one scope', () => {
    assert(
      property(described, (all) => {
        const { discount, scope } = couponTerms(all);
        expect(discount).toEqual(
          all.percentOff === undefined
            ? { type: 'amount', amountOff: all.amountOff }
            : { type: 'percent', percentOff: all.percentOff },
        );
        expect(scope.type).toBe(all.couponType);
      }),
    );
  });

  it('coupon parameters name each error once, by a parameter of the API', () => {
    assert(
      property(parameters, (all) => {
        const names = couponFaults(all).map(({ parameter }) => parameter);
        expect(new Set(names).size).toBe(names.length);
        expect(names.filter((name) => !/^[a-z_]+$/.test(name))).toEqual([]);
      }),
    );
  });
});

describe('a coupon code', () => {
  it('the folded form of a folded coupon code is the same', () => {
    assert(
      property(string({ unit: 'grapheme' }), (code) => {
        const folded = foldCouponCode(code);
        expect(foldCouponCode(folded)).toBe(folded);
        expect(foldCouponCode(code.normalize('NFD'))).toBe(folded);
      }),
    );
  });
});

describe('a datetime', () => {
  const years = {
    min: new Date(Date.UTC(1, 0, 2)),
    max: new Date(Date.UTC(9999, 11, 30)),
    noInvalidDate: true,
  };
  const instant = date(years).map((one) => Math.floor(one.getTime() / 1000) * 1000);

  it('a datetime is parsed as it was formatted', () => {
    assert(
      property(instant, (at) => {
        expect(parseDatetime(formatDatetime(at))).toBe(at);
      }),
    );
  });

  it('a datetime is the same instant in every time zone', () => {
    const offset = integer({ min: -23 * 60, max: 23 * 60 });
    assert(
      property(instant, offset, (at, minutes) => {
        const local = new Date(at + minutes * 60_000).toISOString().slice(0, 19);
        const sign = minutes < 0 ? '-' : '+';
        const hours = String(Math.trunc(Math.abs(minutes) / 60)).padStart(2, '0');
        const rest = String(Math.abs(minutes) % 60).padStart(2, '0');
        expect(parseDatetime(`${local}${sign}${hours}:${rest}`)).toBe(at);
      }),
    );
  });

  it('a datetime with a day, hour or minute that does not exist is rejected', () => {
    const two = (most: number) => nat(most).map((value) => String(value).padStart(2, '0'));
    assert(
      property(two(13), two(32), two(25), two(61), (month, day, hour, minute) => {
        const text = `2023-${month}-${day}T${hour}:${minute}:05+00:00`;
        const at = parseDatetime(text);
        expect(at === null || formatDatetime(at) === text, text).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });
});
