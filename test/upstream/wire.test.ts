import { describe, expect, test } from 'vitest';
import {
  readCoupon,
  readCoupons,
  readLicense,
  writeCoupon,
  parseForeignDate,
} from '../../src/upstream/wire.ts';
import { buildTerms } from '../support/builders/coupon-builders.ts';

const key = 'ABCDE-FGHJK-LMNPQ-RSTUV';
const license = {
  license_key: key,
  enabled: true,
  product_link: 'RGsF',
  buyer_email: 'a@example.com',
  uses: 3,
  date: '2024-02-22T11:23:05+00:00',
};
const coupon = {
  id: 7,
  coupon_type: 'multi',
  percent_off: 12.5,
  amount_off: null,
  code: 'SPRING',
  start_date: null,
  end_date: '2024-02-22T12:23:05+01:00',
  product_key: null,
  collection_id: null,
  minimum_purchase_amount: null,
  usage_limit: 5,
  notes: null,
};
const at = Date.UTC(2024, 1, 22, 11, 23, 5);
const terms = buildTerms({ discount: { type: 'percent', percentOff: 12.5 }, endAt: at, usageLimit: 5 });

describe('a license response', () => {
  test('a license response becomes a license of the domain', () => {
    expect(readLicense({ data: license }, key, false)).toEqual({
      value: {
        licenseKey: key,
        enabled: true,
        productKey: 'RGsF',
        buyerEmail: 'a@example.com',
        uses: 3,
        createdAt: at,
      },
    });
  });

  test('a license response may have the key without the invisible and typographic characters of the request', () => {
    const asked = `${key.replaceAll('-', '–')}\u200b`;
    expect(readLicense({ data: license }, asked, false)).toMatchObject({ value: { licenseKey: key } });
    expect(readLicense({ data: license }, `${key}X`, false)).toHaveProperty('fault');
  });

  test('a license response is parsed without a member that is nested too deeply', () => {
    const deep: unknown = JSON.parse('['.repeat(200_000) + ']'.repeat(200_000));
    const reading = readLicense({ data: { deep, ...license, seats: 1 } }, key, false);
    expect('value' in reading && reading.value.extra).toEqual({ seats: 1 });
  });

  test('a license response keeps additional members up to 1 KiB', () => {
    const others =
      '"product_name":"Press","__proto__":{"a":1},"long":"' + 'x'.repeat(1_024) + '","seats":[1]';
    const data: unknown = JSON.parse(`{${others},${JSON.stringify(license).slice(1)}`);
    const reading = readLicense({ data }, key, false);
    const { extra } = 'value' in reading ? reading.value : {};
    expect(JSON.stringify(extra)).toBe('{"product_name":"Press","seats":[1]}');
  });

  test.each([
    [1_024, true],
    [1_025, false],
  ])('a license response keeps %i bytes of additional members: %s', (bytes, isKept) => {
    const notes = 'x'.repeat(bytes - '{"notes":""}'.length);
    const reading = readLicense({ data: { ...license, notes } }, key, false);
    expect('value' in reading && reading.value.extra).toEqual(isKept ? { notes } : undefined);
  });

  test.each([
    ['a negative count', { uses: -1 }],
    ['members that the specification does not know', { refunded: false, __proto__: null }],
    ['a datetime without zone', { date: '2024-02-22 11:23:05' }],
  ])('a license response may have %s', (_, change) => {
    expect(readLicense({ data: { ...license, ...change } }, key, false)).toMatchObject({
      value: { licenseKey: key, createdAt: at },
    });
  });

  test.each(['buyer_email', 'product_link'])(
    'a license response keeps a %s of up to 1,024 characters',
    (name) => {
      const readingOf = (length: number): object =>
        readLicense({ data: { ...license, [name]: 'x'.repeat(length) } }, key, false);
      const member = name === 'buyer_email' ? 'buyerEmail' : 'productKey';
      expect(readingOf(1_024)).toMatchObject({ value: { [member]: 'x'.repeat(1_024) } });
      expect(readingOf(1_025)).toMatchObject({ value: { [member]: '' } });
    },
  );

  test.each([
    ['product_link', null, { productKey: '' }],
    ['product_link', undefined, { productKey: '' }],
    ['product_link', 17, { productKey: '17' }],
    ['product_link', { url: 'x' }, { productKey: '' }],
    ['buyer_email', null, { buyerEmail: '' }],
    ['buyer_email', undefined, { buyerEmail: '' }],
    ['buyer_email', false, { buyerEmail: '' }],
    ['date', null, { createdAt: 0 }],
    ['date', undefined, { createdAt: 0 }],
    ['date', 'yesterday', { createdAt: 0 }],
    ['date', '2024-02-30T11:23:05Z', { createdAt: 0 }],
    ['date', '', { createdAt: 0 }],
    ['date', {}, { createdAt: 0 }],
    ['uses', '3', { uses: 3 }],
    ['uses', '-2', { uses: -2 }],
    ['uses', '3.0', { uses: 3 }],
  ])(
    'a license response whose %s is %j is accepted, because the verdict does not depend on it',
    (name, value, change) => {
      const { licenseKey, enabled, ...rest } = { licenseKey: key, enabled: true, ...change };
      // As JSON, which leaves out a member that is undefined.
      const body: unknown = JSON.parse(JSON.stringify({ data: { ...license, [name]: value } }));
      expect(readLicense(body, key, false)).toMatchObject({
        value: { licenseKey, enabled, uses: 3, ...rest },
      });
    },
  );

  test('a license response may have its key as a number', () => {
    const reading = readLicense({ data: { ...license, license_key: 1234567 } }, '1234567', false);
    expect(reading).toMatchObject({ value: { licenseKey: '1234567' } });
  });

  test('a license response has the key in the upstream’s spelling', () => {
    const own = key.toLowerCase();
    expect(readLicense({ data: { ...license, license_key: ` ${own}\n` } }, key, false)).toMatchObject({
      value: { licenseKey: own },
    });
  });

  test.each([
    ['enabled', 1],
    ['enabled', 'true'],
    ['enabled', null],
    ['enabled', undefined],
    ['uses', 'three'],
    ['uses', ''],
    ['uses', '1e3'],
    ['uses', undefined],
    ['uses', 1.5],
    ['uses', Number.MAX_SAFE_INTEGER],
    ['uses', Number.MIN_SAFE_INTEGER],
    ['uses', null],
    ['license_key', undefined],
    ['license_key', null],
  ])('a license response whose %s is %j is rejected, and the error names the place', (name, value) => {
    const reading = readLicense({ data: { ...license, [name]: value } }, key, false);
    expect(reading).toEqual({ fault: expect.stringMatching(new RegExp(`^data\\.${name}: (?:Invalid|Too)`)) });
  });

  test('a license response about another key is rejected, and the error repeats neither key', () => {
    const reading = readLicense({ data: license }, 'OTHER', false);
    expect(reading).toEqual({ fault: 'the response is about another license key' });
  });

  test.each([{}, { data: null }, { data: [license] }, license])('a license response is not %j', (body) => {
    expect(readLicense(body, key, false)).toHaveProperty('fault');
  });
});

describe('a coupon response', () => {
  const anyCoupon = (): boolean => true;

  test.each([
    ['numbers as texts', { id: '7', percent_off: '12.50', usage_limit: '5' }],
    ['a date in another form', { end_date: '2024-02-22 11:23:05 +0000' }],
    ['no notes', { notes: undefined }],
    ['no product and no collection', { product_key: undefined, collection_id: undefined }],
    ['the other discount left out', { amount_off: undefined }],
  ])('a coupon response may have %s', (_, change) => {
    expect(readCoupon({ data: { ...coupon, ...change } }, anyCoupon)).toEqual({ value: { ...terms, id: 7 } });
  });

  test('a coupon response becomes a coupon of the domain', () => {
    expect(readCoupon({ data: coupon }, anyCoupon)).toEqual({ value: { ...terms, id: 7 } });
  });

  test.each([
    ['single', { coupon_type: 'single', product_key: 'P' }, { type: 'single', productKey: 'P' }],
    [
      'collection',
      { coupon_type: 'collection', collection_id: 'C' },
      { type: 'collection', collectionId: 'C' },
    ],
    ['multi beside a product key', { product_key: 'P' }, { type: 'multi' }],
  ])('a coupon response may be %s', (_, change, scope) => {
    expect(readCoupon({ data: { ...coupon, ...change } }, anyCoupon)).toMatchObject({ value: { scope } });
  });

  test('a coupon response may take a fixed amount', () => {
    const amount = { ...coupon, percent_off: null, amount_off: 500 };
    expect(readCoupon({ data: amount }, anyCoupon)).toMatchObject({
      value: { discount: { type: 'amount', amountOff: 500 } },
    });
  });

  test.each([
    ['both discounts', { amount_off: 500 }],
    ['neither discount', { percent_off: null }],
    ['a discount of nothing', { percent_off: 0 }],
    ['more than everything off', { percent_off: 100.1 }],
    ['a part of a cent off', { percent_off: null, amount_off: 0.5 }],
    ['no product though it is for a single one', { coupon_type: 'single' }],
    ['no collection though it is for one', { coupon_type: 'collection' }],
    ['a type that the specification does not know', { coupon_type: 'all' }],
    ['a field left out', { usage_limit: undefined }],
    ['the id that an agent gives a coupon before its upstream does', { id: -1 }],
  ])('a coupon response with %s is rejected', (_, change) => {
    expect(readCoupon({ data: { ...coupon, ...change } }, anyCoupon)).toHaveProperty('fault');
  });

  test('a coupon response about another coupon is rejected', () => {
    expect(readCoupon({ data: coupon }, ({ id }) => id === 8)).toHaveProperty('fault');
  });
});

describe('a list of coupons', () => {
  test('a list of coupons whose shape is wrong is not read', () => {
    expect(readCoupons({ data: { coupons: [] } })).toEqual({ value: { coupons: [], unreadable: [] } });
    expect(readCoupons({ data: [] })).toHaveProperty('fault');
  });

  test.each([
    ['a zero end date', { end_date: '0000-00-00 00:00:00' }, 'end_date: '],
    ['an unknown type', { coupon_type: 'bundle' }, 'coupon_type: '],
    ['an amount of zero', { percent_off: null, amount_off: 0 }, 'amount_off: '],
    ['two discounts', { amount_off: 1 }, 'amount_off: '],
    [
      'an id below zero, which an agent above has not delivered yet',
      { id: -1 },
      'id: Invalid input: provisional',
    ],
  ])('a list leaves out a coupon with %s, and names the coupon', (_, changes, fault) => {
    const odd = { ...coupon, id: 8, code: 'ODD', ...changes };
    expect(readCoupons({ data: { coupons: [odd, coupon] } })).toEqual({
      value: {
        coupons: [{ ...terms, id: 7 }],
        unreadable: [{ id: odd.id, code: 'ODD', fault: expect.stringContaining(fault) as string }],
      },
    });
  });

  test('a list of coupons contains the valid coupons, and names the others', () => {
    const odd = { ...coupon, amount_off: 1, id: 8, code: 'ODD' };
    const listed = [odd, coupon, { ...odd, id: 'x', code: 1 }, 'nothing', null];
    const fault = expect.stringMatching(/./);
    expect(readCoupons({ data: { coupons: listed } })).toEqual({
      value: {
        coupons: [{ ...terms, id: 7 }],
        unreadable: [
          { id: 8, code: 'ODD', fault: expect.stringMatching(/^amount_off: /) },
          { id: null, code: null, fault },
          { id: null, code: null, fault },
          { id: null, code: null, fault },
        ],
      },
    });
  });
});

test('the request for a coupon contains only the terms that are set', () => {
  expect(writeCoupon(terms)).toEqual({
    coupon_type: 'multi',
    percent_off: '12.5',
    code: 'SPRING',
    end_date: '2024-02-22T11:23:05+00:00',
    usage_limit: '5',
  });
  expect(
    writeCoupon({
      ...terms,
      scope: { type: 'single', productKey: 'P' },
      discount: { type: 'amount', amountOff: 500 },
      startAt: at,
      endAt: null,
      minimumPurchaseAmount: 100,
      usageLimit: null,
      notes: 'x',
    }),
  ).toEqual({
    coupon_type: 'single',
    product_key: 'P',
    amount_off: '500',
    code: 'SPRING',
    start_date: '2024-02-22T11:23:05+00:00',
    minimum_purchase_amount: '100',
    notes: 'x',
  });
});

describe('a date of another system', () => {
  test.each([
    ['2024-02-22T11:23:05Z', at],
    ['2024-02-22T11:23:05+00:00', at],
    ['2024-02-22T11:23:05+0000', at],
    ['2024-02-22T13:23:05+0200', at],
    ['2024-02-22T05:53:05-05:30', at],
    ['2024-02-22T12:23:05+01', at],
    ['2024-02-22T11:23:05', at],
    ['2024-02-22 11:23:05', at],
    ['2024-02-22 11:23:05 UTC', at],
    ['2024-02-22 11:23:05 +0000', at],
    [' 2024-02-22T11:23:05Z\n', at],
    ['2024-02-22T11:23:05.250+0000', at + 250],
    ['2024-02-22T11:23:05,250Z', at + 250],
    ['2024-02-22T11:23:05.250000Z', at + 250],
    ['2024-02-22T11:23Z', at - 5_000],
    ['2024-02-22', Date.UTC(2024, 1, 22)],
    ['Thu, 22 Feb 2024 11:23:05 GMT', at],
    ['Thu, 22 Feb 2024 13:23:05 +0200', at],
    ['22 Feb 2024 11:23:05 UTC', at],
    [at / 1_000, at],
    [String(at / 1_000), at],
    [at, at],
    [at / 1_000 + 0.25, at + 250],
  ])('a date of another system, %j, is accepted', (given, expected) => {
    expect(parseForeignDate(given)).toBe(expected);
  });

  test.each([
    '',
    'yesterday',
    '22/02/2024',
    '02/22/2024 11:23',
    '2024-02-30',
    '2024-02-22T24:00:00Z',
    '2024-02-22T11:23:05+99:99',
    '20240222',
    '9'.repeat(20),
    `Thu, ${' '.repeat(50_000)}`,
    1e300,
    Number.NaN,
    null,
    undefined,
    true,
    {},
  ])('a date of another system, %j, is rejected', (given) => {
    expect(parseForeignDate(given)).toBeNull();
  });
});
