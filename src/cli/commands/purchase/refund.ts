import { requestAndShow } from '../../client/request.ts';
import { defineCommand, positional } from '../../command.ts';
import { findPurchase, purchasePath, purchaseView } from './purchase.ts';

export const command = defineCommand({
  command: 'refund <purchase>',
  describe: 'Refund a purchase, which disables its license key',
  builder: { purchase: positional('Purchase id, or the license key that was sold', 'purchase') },
  examples: [['latchkey purchase refund ABCDE-FGHJK-LMNPQ-RSTUV', 'by the license key']],
  epilogue: 'No money is moved: refund the payment with your payment provider.',
  handler: async (args, output) => {
    const { purchase_id: id, refunded_at: before } = (await findPurchase(args, args.purchase)).data;
    if (before !== null) output.printError([`latchkey: already refunded on ${before}`]);
    const call = { method: 'POST', path: `${purchasePath(id)}/refund` } as const;
    return await requestAndShow(args, output, call, purchaseView);
  },
});
