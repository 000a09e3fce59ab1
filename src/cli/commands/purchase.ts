import { ask } from '../client/ask.ts';
import { type CommandEntry, defineCommand, entry, operand } from '../command.ts';
import { formatPurchase } from '../text/purchase.ts';
import { purchase } from '../client/wire.ts';

const refund = defineCommand(
  (yargs) => yargs.positional('purchase', operand('Purchase id')),
  (args, output) =>
    ask(
      args,
      output,
      { method: 'POST', path: `/admin/v1/purchases/${encodeURIComponent(args.purchase)}/refund` },
      { schema: purchase, show: formatPurchase },
    ),
);

/** `purchase …`. */
export const purchaseCommands: readonly CommandEntry[] = [
  entry('refund <purchase>', 'Refund a purchase, which disables its license key', refund),
];
