import { expect, test } from 'vitest';
import type { License } from '../../../src/domain/license.ts';
import {
  changeAnswer,
  isGood,
  isOfPermalink,
  readCall,
  readLicense,
  storedKey,
  texts,
  verifyAnswer,
} from '../../../src/stores/gumroad/wire.ts';

const key = '11111111-AAAAAAAA-11111111-AAAAAAAA';
const now = Date.parse('2026-06-01T00:00:00Z');
const purchase = {
  license_key: key,
  email: 'buyer@example.com',
  product_permalink: 'https://seller.gumroad.com/l/QMGY',
  permalink: 'QMGY',
  short_product_id: 'abcd',
  sale_timestamp: '2026-01-05T19:38:56Z',
  refunded: false,
};

function read(body: Record<string, unknown>): object {
  return readLicense(body, key, now);
}

function licenseIn(body: Record<string, unknown>): License {
  const reading = readLicense(body, key, now);
  if ('fault' in reading) throw new Error(reading.fault);
  return reading.value;
}

test('a license has the count and the members of Gumroad’s answer, and is replayed with another count', () => {
  const body = { success: true, uses: 3, purchase, future: [1] };
  const license = licenseIn(body);
  expect(license).toMatchObject({
    licenseKey: key,
    productKey: purchase.product_permalink,
    buyerEmail: purchase.email,
    uses: 3,
    enabled: true,
    createdAt: Date.parse(purchase.sale_timestamp),
  });
  expect(verifyAnswer({ ...license, uses: 4 }, now)).toEqual({
    status: 200,
    body: { ...body, uses: 4 },
  });
});

test.each([
  [{ refunded: true }, false],
  [{ chargebacked: true }, false],
  [{ disputed: true }, false],
  [{ disputed: true, dispute_won: true }, true],
  [{ subscription_ended_at: '2026-05-31T23:59:59Z' }, false],
  [{ subscription_ended_at: '2026-06-01T00:00:01Z' }, true],
  [{ subscription_cancelled_at: '2026-05-01T00:00:00Z' }, false],
  [{ subscription_failed_at: '2026-05-01T00:00:00Z' }, false],
  [{ subscription_ended_at: null, subscription_cancelled_at: null }, true],
  [{}, true],
])('a purchase with %o is good: %s', (members, good) => {
  expect(isGood({ purchase: { ...purchase, ...members } }, now)).toBe(good);
});

test('a customer whom the seller has imported has a license without a purchase', () => {
  const body = { success: true, uses: 0, imported_customer: { email: 'old@example.com', id: 'x' } };
  const license = licenseIn(body);
  expect(license).toMatchObject({ licenseKey: key, buyerEmail: 'old@example.com', enabled: true });
  expect(verifyAnswer(license, now)).toEqual({ status: 200, body });
});

test.each([texts.disabled, texts.revoked])(
  '"%s" says no about the key, and nothing about its count',
  (message) => {
    const reading = readLicense({ success: false, message }, key, now);
    expect(reading).toMatchObject({ value: { enabled: false, uses: 0 }, shows: 'enabled' });
    const answer = verifyAnswer(licenseIn({ success: false, message }), now);
    expect(answer).toEqual({ status: 404, body: { success: false, message } });
  },
);

test.each([
  [{ success: true }, 'uses'],
  [{ success: false, uses: 3 }, 'success'],
  [{ success: true, uses: -1 }, 'uses'],
  [{ success: true, uses: 1, purchase: { ...purchase, license_key: 'ANOTHER' } }, 'another license key'],
])('%o is no answer about this key', (body, fault) => {
  expect(read(body)).toEqual({ fault: expect.stringContaining(fault) as string });
});

test('a key that is disabled here is answered as Gumroad answers a disabled key', () => {
  const disabled = { ...licenseIn({ success: true, uses: 3, purchase }), enabled: false };
  expect(verifyAnswer(disabled, now)).toEqual({
    status: 404,
    body: { success: false, message: texts.disabled },
  });
  expect(changeAnswer(disabled)).toMatchObject({ status: 200, body: { success: true, uses: 3, purchase } });
});

test('a refunded key is answered with its refund, whether it counts as enabled or not', () => {
  const refunded = { success: true, uses: 3, purchase: { ...purchase, refunded: true } };
  const license = licenseIn(refunded);
  expect(license.enabled).toBe(false);
  expect(verifyAnswer(license, now)).toEqual({ status: 200, body: refunded });
});

test('nothing is answered for a license that Gumroad has not shown', () => {
  const license = { licenseKey: key, productKey: '', buyerEmail: '', uses: 0, enabled: true, createdAt: 0 };
  expect(verifyAnswer(license, now)).toBeNull();
  expect(verifyAnswer({ ...license, extra: { product_name: 'Shop' } }, now)).toBeNull();
});

test('a purchase of more than 8 KiB keeps the members that programs look at', () => {
  const custom = { custom_fields: 'x'.repeat(9_000) };
  const reading = readLicense({ success: true, uses: 1, purchase: { ...purchase, ...custom } }, key, now);
  expect(reading).toMatchObject({ value: { extra: { success: true, purchase } } });
});

test('a buyer who makes a member of the purchase long does not push out a refund or the end of a membership', () => {
  const decisive = { refunded: true, chargebacked: true, subscription_ended_at: '2026-05-01T00:00:00Z' };
  const { refunded: _, ...others } = purchase;
  for (const length of [7_500, 7_800, 7_900, 8_000, 8_100, 20_000]) {
    const sale = { referrer: 'x'.repeat(length), ...others, url_params: {}, ...decisive };
    const license = licenseIn({ success: true, uses: 1, purchase: sale });
    expect(license).toMatchObject({ enabled: false, extra: { purchase: decisive } });
  }
});

test('of an answer that is nested too deeply to be stored, the rest is kept', () => {
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`) as unknown;
  const license = licenseIn({
    success: true,
    uses: 1,
    purchase,
    future: deep,
    imported_customer: { email: 'old@example.com', deep },
  });
  expect(license.extra).toEqual({
    success: true,
    purchase,
    imported_customer: { email: 'old@example.com' },
  });
});

test.each([
  [{ incrementUsesCount: 'false' }, false],
  [{ incrementUsesCount: false }, false],
  [{ incrementUsesCount: 'False' }, true],
  [{ incrementUsesCount: 0 }, true],
  [{ incrementUsesCount: 'no' }, true],
  [{}, true],
])('a verify with %o counts a use: %s', (values, isCounted) => {
  expect(readCall(values)).toMatchObject({ isCounted });
});

test.each([
  [{ productPermalink: 'a', linkId: 'b', id: 'c' }, 'c'],
  [{ productPermalink: 'a', linkId: 'b' }, 'b'],
  [{ productPermalink: 'a' }, 'a'],
  [{ productPermalink: ' ' }, null],
])('of %o the permalink is %s', (values, permalink) => {
  expect(readCall(values)).toMatchObject({ permalink, productId: null });
});

test('a parameter that is no text is refused in Gumroad’s words', () => {
  expect(readCall({ licenseKey: 7, productId: ['x'] })).toEqual({
    status: 400,
    body: { success: false, message: "The 'license_key' parameter must be a string." },
  });
});

test('permalinks are compared without letter case, and only with what the purchase shows', () => {
  expect(isOfPermalink({ purchase }, 'qmgy')).toBe(true);
  expect(isOfPermalink({ purchase }, 'ABCD')).toBe(true);
  expect(isOfPermalink({ purchase }, 'other')).toBe(false);
  expect(isOfPermalink({ success: false }, 'other')).toBe(true);
});

test.each([
  [` ${key.toLowerCase()} `, key],
  ['A-key-of-the-seller', 'A-key-of-the-seller'],
  ['  ', null],
])('the key %o is stored as %o', (text, stored) => {
  expect(storedKey(text)).toBe(stored);
});
