import { expect, test } from 'vitest';
import {
  noProducts,
  recognizeProducts,
  type ConfiguredProduct,
  type ProductList,
} from '../../../src/domain/agent/product.ts';

/** "key secret": a product as it is configured. */
function configured(...products: readonly string[]): ConfiguredProduct[] {
  return products.map((product) => {
    const [productKey = '', secretDigest = ''] = product.split(' ');
    return { productKey, secretDigest };
  });
}

/** The products after a start and some reloads. */
function after(...configurations: readonly (readonly string[])[]): ProductList {
  return configurations.reduce(
    (list, products) => recognizeProducts(list, configured(...products)),
    noProducts,
  );
}

function idsAfter(...configurations: readonly (readonly string[])[]): Record<string, string> {
  return Object.fromEntries(
    after(...configurations).configured.map(({ productKey, id }) => [productKey, id]),
  );
}

test('the first key of a product is its id', () => {
  expect(idsAfter(['press 1', 'brush 2'])).toEqual({ press: 'press', brush: 'brush' });
});

test('a product keeps its id when its key or its secret changes', () => {
  expect(idsAfter(['press 1'], ['renamed 1'])).toEqual({ renamed: 'press' });
  expect(idsAfter(['press 1'], ['press 2'])).toEqual({ press: 'press' });
  expect(idsAfter(['press 1'], ['renamed 1'], ['renamed 2'], ['again 2'])).toEqual({ again: 'press' });
});

test('products that swap their keys keep their ids', () => {
  const swapped = { brush: 'press', press: 'brush' };
  expect(idsAfter(['press 1', 'brush 2'], ['brush 1', 'press 2'])).toEqual(swapped);
});

test('products keep their ids when each takes the key of the next', () => {
  const shifted = { brush: 'press', ink: 'brush' };
  expect(idsAfter(['press 1', 'brush 2'], ['brush 1', 'ink 2'])).toEqual(shifted);
});

test('a product that takes the key of a removed one keeps its own id', () => {
  const list = after(['press 1', 'brush 2'], ['brush 1']);
  expect(list.configured).toEqual([{ id: 'press', productKey: 'brush', secretDigest: '1' }]);
  expect(list.removed).toEqual([{ id: 'brush', productKey: 'brush', secretDigest: '2' }]);
});

test('a product that is removed and comes back under another key has its id again', () => {
  expect(idsAfter(['press 1'], [], ['renamed 1'])).toEqual({ renamed: 'press' });
  expect(idsAfter(['press 1'], [], ['other 2'], ['other 2', 'renamed 1'])).toEqual({
    other: 'other',
    renamed: 'press',
  });
});

test('a removed product that comes back with another secret is recognized by its key', () => {
  expect(idsAfter(['press 1'], [], ['press 2'])).toEqual({ press: 'press' });
});

test('a new product with the former key of another one gets an id of its own', () => {
  expect(idsAfter(['press 1'], ['renamed 1', 'press 2'])).toEqual({ renamed: 'press', press: 'press~2' });
  const third = idsAfter(['press 1'], ['renamed 1', 'press 2'], ['renamed 1', 'once 2', 'press 3']);
  expect(third).toEqual({ renamed: 'press', once: 'press~2', press: 'press~3' });
});

test('another key with another secret is another product', () => {
  expect(idsAfter(['press 1'], ['brush 2'])).toEqual({ brush: 'brush' });
});

test('at most a thousand removed products are recognized when they come back', () => {
  const before = Array.from({ length: 1_001 }, (_, n) => `product-${n} ${n}`);
  expect(after(before, []).removed).toHaveLength(1_000);
  expect(idsAfter(before, [], ['renamed 999'])).toEqual({ renamed: 'product-999' });
});
