import { defineCommand, positional, textOption, UsageError } from '../../command.ts';
import { changeProduct } from './product.ts';

export const command = defineCommand({
  command: 'update <product>',
  describe: 'Rename a product, or change whether its price is recurring',
  builder: {
    product: positional('Product key', 'product'),
    name: textOption('New name'),
    recurring: { choices: ['true', 'false'], describe: 'Whether it has a recurring price' },
  },
  examples: [['latchkey product update RGsF --name "My editor 2"', 'renames it; its keys stay valid']],
  handler: async (args, output) => {
    const { name, recurring } = args;
    if (name === undefined && recurring === undefined) {
      throw new UsageError('Give something to change: --name or --recurring');
    }
    return await changeProduct(args, output, {
      ...(name !== undefined && { name }),
      ...(recurring !== undefined && { recurring: recurring === 'true' }),
    });
  },
});
