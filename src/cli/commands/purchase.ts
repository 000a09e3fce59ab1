import { z } from 'zod';
import { type AnswerView, defineRequest } from '../client/ask.ts';
import { type Command, operand } from '../command.ts';
import { formatFields } from '../format.ts';
import { type License, license, licenseFields } from './license-view.ts';

/** Where purchases are recorded. */
export const purchasesPath = '/admin/v1/purchases';

interface Purchase {
  readonly purchase_id: string;
  readonly refunded: boolean;
  readonly license: License;
}

const purchase: z.ZodType<Purchase> = z.object({
  purchase_id: z.string(),
  refunded: z.boolean(),
  license,
});

/** Shows a purchase and its license. */
export const purchaseView: AnswerView<Purchase> = {
  schema: purchase,
  show: ({ purchase_id, refunded, license: issued }) =>
    formatFields({
      purchase: purchase_id,
      refunded: refunded ? 'yes' : 'no',
      ...licenseFields(issued),
    }),
};

/** `purchase refund`. */
export const refundPurchase: Command = defineRequest(
  (yargs) => yargs.positional('purchase', operand('Purchase id')),
  (args) => ({ method: 'POST', path: `${purchasesPath}/${encodeURIComponent(args.purchase)}/refund` }),
  purchaseView,
);
