import { defineCommand, positional } from '../../command.ts';
import { changeProduct } from './product.ts';

export const command = defineCommand({
  command: 'archive <product>',
  describe: 'Stop selling a product; its keys stay valid',
  builder: { product: positional('Product key', 'product') },
  examples: [['latchkey product archive RGsF', 'no more sales; its keys stay valid']],
  handler: async (args, output) => await changeProduct(args, output, { archived: true }),
});
