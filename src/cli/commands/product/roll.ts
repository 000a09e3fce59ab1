import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { keepOldOption, readKeepOld } from '../../values.ts';
import { newSecretView, productPath } from './product.ts';

export const command = defineRequest({
  command: 'roll <product>',
  describe: 'Create a new secret; the old one stops at once, or after a while',
  builder: { product: positional('Product key', 'product'), 'keep-old': keepOldOption },
  examples: [['latchkey product roll RGsF --keep-old 24h', 'callers have a day to change to the new one']],
  request: (args) => ({
    method: 'POST',
    path: `${productPath(args.product)}/roll-secret`,
    json: { keep_old_s: readKeepOld(args.keepOld) },
  }),
  view: newSecretView,
});
