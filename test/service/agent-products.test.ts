import { expect, test } from 'vitest';
import { noProducts } from '../../src/domain/agent/product.ts';
import { AgentProducts, storedProducts, storeProducts } from '../../src/service/agent/products.ts';
import { Harness } from '../support/harness/service-harness.ts';

const press = { productKey: 'press', secretDigest: '1' };

test('a product and its credential are shown with the current product key', () => {
  const products = new AgentProducts(noProducts, [press]);
  products.configure([{ ...press, productKey: 'renamed' }]);
  expect(products.idOf('renamed')).toBe('press');
  expect(products.idOf('press')).toBeNull();
  expect(products.keyOf('press')).toBe('renamed');
  expect(products.credentialName('product:press')).toBe('product:renamed');
  expect(products.credentialName('token:press')).toBe('token:press');
});

test('a removed product is not found by its key, but still shown with it', () => {
  const products = new AgentProducts(noProducts, [press]);
  products.configure([]);
  expect(products.idOf('press')).toBeNull();
  expect(products.keyOf('press')).toBe('press');
  expect(products.credentialName('product:press')).toBe('product:press');
});

test('a store returns the products that were stored', async () => {
  await using harness = new Harness();
  const { settings } = harness.store;
  expect(storedProducts(settings)).toEqual(noProducts);
  const { list } = new AgentProducts(noProducts, [press]);
  storeProducts(settings, list);
  expect(storedProducts(settings)).toEqual(list);
});
