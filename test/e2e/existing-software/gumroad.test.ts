import { gumroadPrograms } from '../../support/reference/existing-programs.ts';
import { keys, openGumroad, permalink, productId, startGumroad } from '../../support/stores/gumroad.ts';
import { testUses } from '../../support/stores/store-programs.ts';

// Very old programs name a product by its permalink, and Gumroad still knows products that may be named so.
const products = [{ productId, permalink, needsProductId: false }];

testUses(
  {
    name: 'Gumroad',
    programs: gumroadPrograms,
    environment: { PRODUCT_ID: productId, PRODUCT_PERMALINK: permalink },
    keys,
    good: ['good', 'running'],
    concluded: { good: /: VALID/, unknown: /: INVALID/ },
    open: () => openGumroad(products),
    start: (configuration) => startGumroad(configuration, products),
  },
  { by: 1, usesAt: (store) => store.license(keys.good).uses },
);
