import { defineCommand, positional } from '../../command.ts';
import { changeProduct } from './product.ts';

export const command = defineCommand({
  command: 'unarchive <product>',
  describe: 'Sell an archived product again',
  builder: { product: positional('Product key', 'product') },
  examples: [['latchkey product unarchive RGsF', 'it is on sale again']],
  handler: async (args, output) => await changeProduct(args, output, { archived: false }),
});
