import { expect, test } from 'vitest';
import {
  readLicenseBody,
  readQuote,
  readRedemption,
  writeCart,
  writeLicense,
} from '../../src/client/wire.ts';
import type { Cart, License } from '../../src/client/types.ts';
import { quoteObject, redemptionObject } from '../../src/wire/checkout.ts';
import { examples } from '../../src/wire/examples.ts';
import { licenseObject } from '../../src/wire/license.ts';

// The client has no dependencies, so it cannot import the zod objects of src/wire: these tests compare the two.

const license: License = {
  licenseKey: 'WTKP4-66NL5-HMKQW-GFSCZ',
  productKey: 'RGsF',
  buyerEmail: 'buyer@example.com',
  enabled: true,
  uses: 3,
  date: new Date('2026-02-22T10:00:00Z'),
  entitlements: ['export', 'pro'],
  expiresAt: new Date('2027-02-22T10:00:00Z'),
  graceUntil: new Date('2027-03-01T10:00:00Z'),
  status: 'active',
};

/** Members that programs do not need. */
const ofSellers = new Set('usesLimit metadata seats leaseHoldS leaseTermS leaseRefreshS'.split(' '));

function exampleOf(operation: string): unknown {
  return (examples[operation]?.response as { data: unknown } | undefined)?.data;
}

function camelCase(name: string): string {
  return name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** The members of a shape by the names of the client. */
function namesOf(shape: object): string[] {
  const renamed: Readonly<Record<string, string>> = { product_link: 'productKey', lines: 'items' };
  return Object.keys(shape).map((name) => renamed[name] ?? camelCase(name));
}

test('the client writes and reads every member of a license that programs need as src/wire declares it', () => {
  const written = licenseObject.strict().parse(writeLicense(license));
  expect(readLicenseBody({ data: written })).toEqual(license);
  const names = namesOf(licenseObject.shape).filter((name) => !ofSellers.has(name));
  expect(Object.keys(license).toSorted()).toEqual(names.toSorted());
});

test('the client reads a license without terms, whose status is what enabled says', () => {
  const {
    entitlements: _,
    expires_at: __,
    grace_until: ___,
    status: ____,
    ...plain
  } = licenseObject.parse(writeLicense(license));
  const read = { ...license, entitlements: [], expiresAt: null, graceUntil: null };
  expect(readLicenseBody({ data: plain })).toEqual(read);
  const disabled = { ...read, enabled: false, status: 'disabled' };
  expect(readLicenseBody({ data: { ...plain, enabled: false } })).toEqual(disabled);
});

test('the client reads every member of a quote that src/wire declares', () => {
  const quote = readQuote({ data: quoteObject.strict().parse(exampleOf('quoteCoupon')) });
  expect(Object.keys(quote ?? {}).toSorted()).toEqual(namesOf(quoteObject.shape).toSorted());
});

test('the client reads every member of a redemption that src/wire declares, except over_limit', () => {
  const redemption = readRedemption({ data: redemptionObject.parse(exampleOf('redeemCoupon')) });
  const names = namesOf(redemptionObject.shape).filter((name) => name !== 'overLimit');
  expect(Object.keys(redemption ?? {}).toSorted()).toEqual(names.toSorted());
});

test('the client writes a cart with the members of the example in src/wire', () => {
  const cart: Cart = { code: 'SPRING20', items: [{ productKey: 'RGsF', amount: 2500, quantity: 2 }] };
  expect(JSON.parse(JSON.stringify(writeCart(cart)))).toEqual(examples['quoteCoupon']?.body);
});
