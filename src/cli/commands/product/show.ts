import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { productPath, productView } from './product.ts';

export const command = defineRequest({
  command: 'show <product>',
  describe: 'Show a product',
  builder: { product: positional('Product key', 'product') },
  examples: [['latchkey product show RGsF', 'its name, price and state']],
  request: ({ product }) => ({ path: productPath(product) }),
  view: productView,
});
