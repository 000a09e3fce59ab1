import { expect, test } from 'vitest';
import { namesProduct, subjectOf } from '../../../../src/features/webhooks/domain/store-event.ts';

test('the license keys, buyers and products of an event are found at every depth, under the usual names', () => {
  const subject = subjectOf({
    id: 'ignored',
    email: ' ada@example.com ',
    items: [
      { product_key: 'RGsF', license_key: 'KEY-1' },
      { product_permalink: 'https://payhip.com/b/k9Ew', license_keys: ['KEY-2', 'KEY-3'] },
    ],
    data: { attributes: { key: 'KEY-4', user_email: 'bob@example.com', product_id: 7 } },
    licenseKey: 'KEY-5',
  });
  expect(subject.licenseKeys.toSorted()).toEqual(['KEY-1', 'KEY-2', 'KEY-3', 'KEY-4', 'KEY-5']);
  expect(subject.buyers.toSorted()).toEqual(['ada@example.com', 'bob@example.com']);
  expect(subject.products.toSorted()).toEqual(['7', 'RGsF', 'https://payhip.com/b/k9Ew']);
});

test.each([
  ['RGsF', true],
  ['k9Ew', true],
  ['Ew', false],
  ['rgsf', false],
])('an event names the product %s: %s', (productKey, isNamed) => {
  const subject = subjectOf({ items: [{ product_key: 'RGsF' }, { permalink: 'https://payhip.com/b/k9Ew' }] });
  expect(namesProduct(subject, productKey)).toBe(isNamed);
});

test('an e-mail address is compared in the form in which addresses are stored', () => {
  expect(subjectOf({ email: 'jo\u0308rg@example.com' }).buyers).toEqual(['j\u00f6rg@example.com']);
});

test('an event with thousands of license keys yields at most 100, also long ones', () => {
  const { licenseKeys } = subjectOf({
    items: Array.from({ length: 5_000 }, (_, index) => ({ license_key: `KEY-${index}` })),
    license_key: 'x'.repeat(1_000),
  });
  expect(licenseKeys).toHaveLength(100);
  expect(licenseKeys).toContain('x'.repeat(1_000));
});

test.each([
  ['a text', '"license_key"'],
  ['null', 'null'],
  ['an empty object', '{}'],
  ['members of another type', '{"license_key":{"a":null},"email":[true],"product_id":null}'],
  ['a member __proto__', '{"__proto__":{"license_key":null}}'],
])('%s names nothing', (_, event) => {
  expect(subjectOf(JSON.parse(event))).toEqual({ licenseKeys: [], buyers: [], products: [] });
});

test('an event of 30,000 nested lists is read without overflowing the stack', () => {
  const event = JSON.parse(`{"license_key":${'['.repeat(30_000)}"KEY-1"${']'.repeat(30_000)}}`) as unknown;
  expect(subjectOf(event).licenseKeys).toEqual(['KEY-1']);
});
