import { answeredAt } from '../../client/request.ts';
import { defineCommand, positional } from '../../command.ts';
import { hintFor } from '../../hint.ts';
import { findPurchase, purchaseView } from './purchase.ts';

export const command = defineCommand({
  command: 'show <purchase>',
  describe: 'Show a purchase, by its id or license key',
  builder: { purchase: positional('Purchase id, or the license key that was sold', 'purchase') },
  examples: [['latchkey purchase show ABCDE-FGHJK-LMNPQ-RSTUV', 'by the license key']],
  handler: async (args, output) => {
    const { data, raw, answer } = await findPurchase(args, args.purchase);
    return await output.result(raw, purchaseView.show(data, answer, hintFor(args)), answeredAt(answer));
  },
});
