import { defineCommand, positional, textOption, UsageError } from '../../command.ts';
import { changeProduct, leaseTermsOptions, readLeaseTerms } from './product.ts';

export const command = defineCommand({
  command: 'update <product>',
  describe: 'Rename a product, or change its price or the terms of its leases',
  builder: {
    product: positional('Product key', 'product'),
    name: textOption('New name'),
    recurring: { choices: ['true', 'false'], describe: 'Whether it has a recurring price' },
    ...leaseTermsOptions,
  },
  examples: [
    ['latchkey product update RGsF --name "My editor 2"', 'renames it; its keys stay valid'],
    ['latchkey product update RGsF --seats 3 --hold 90d', 'three devices may use a license'],
  ],
  handler: async (args, output) => {
    const { name, recurring } = args;
    const leaseTerms = readLeaseTerms(args);
    const changes = {
      ...(name !== undefined && { name }),
      ...(recurring !== undefined && { recurring: recurring === 'true' }),
    };
    if (Object.keys({ ...changes, ...leaseTerms }).length === 0) {
      const options = ['name', 'recurring', ...Object.keys(leaseTermsOptions)].map((option) => `--${option}`);
      throw new UsageError(`Give something to change: ${options.join(', ')}`);
    }
    return await changeProduct(args, output, changes, leaseTerms);
  },
});
